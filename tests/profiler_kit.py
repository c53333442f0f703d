"""Profilers as far as linkgauge knows them: shell scripts that start a command, print something,
and write a report after its end; and a package `nvtx` that writes down what it is told."""

import os
import sys
from pathlib import Path

WRITES = """#!/bin/bash
# Keeps its arguments, understands its own, starts the rest as a child.
printf '%s\\n' "$@" > "$(dirname "$0")/$(basename "$0").arguments"
echo "$(basename "$0") prints this"
while [ $# -gt 0 ]; do case "$1" in
  profile|--trace=*|--nvtx) shift ;;
  --target-processes|--kernel-name) shift 2 ;;
  --output=*) report="${1#--output=}.nsys-rep"; shift ;;
  --export) report="$2.ncu-rep"; shift 2 ;;
  *) break ;;
esac; done
export NVTX_INJECTION64_PATH=/nonexistent
trap 'exit 9' INT TERM HUP  # without a report: nobody is to send it these
"$@"
code=$?
echo "ended with $code" > "${report//%%/%}"
exit $code
"""
REFUSES = "#!/bin/bash\necho 'starting'\necho 'unsupported kernel version' >&2\nexit 7\n"
LEAVES_NOTHING = """#!/bin/bash
while [ "${1#-}" != "$1" ] || [ "$1" = profile ]; do shift; done
"$@"
echo "the importer failed"
exit 1
"""
NVTX = """
import json, os

class annotate:
    def __init__(self, message, domain):
        self.words = message, domain

    def __enter__(self):
        self.write("push")

    def __exit__(self, *error):
        self.write("pop")

    def write(self, what):
        with open(os.environ["NVTX_SEEN"], "a") as seen:
            print(json.dumps([what, *self.words]), file=seen)
"""


def install(folder: Path, name: str, script: str = WRITES) -> str:
    """Puts a profiler into a folder. Returns the PATH that has it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(script)
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def arguments_of(folder: Path, name: str) -> list[str]:
    """The arguments before the command that it was last given to profile."""
    given = (folder / f"{name}.arguments").read_text().split("\n")
    return given[: given.index(sys.executable)]
