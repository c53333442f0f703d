"""The command lines of the documents print what tests/transcripts/as/ holds.

A transcript is what a terminal shows: `$ COMMAND`, its output, what it says on stderr behind `! `,
and `[exit N]` if it does not end with 0. The commands of a file follow each other in one folder.
What differs from run to run is a word in capitals. UPDATE_GOLDEN=1 writes the transcripts anew.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from command_kit import called

TESTS = Path(__file__).parents[1]
TRANSCRIPTS = sorted((TESTS / "transcripts" / "as").glob("*.txt"))
DIFFERING = (
    (re.compile(r"\b20\d{6}T\d{6}Z"), "RUN-ID"),
    (re.compile(r"(?<=Pid )[ \d]{6,7}(?= on )"), "   PID"),
    (re.compile(r"(?<=linkgauge )\d+\.\d+\.\d+"), "VERSION"),
)


def played(command, folder):
    words = shlex.split(command)
    if words[0] == "linkgauge":
        done = called(*words[1:], cwd=folder)
    else:
        done = subprocess.run(
            command, shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
    text = done.stdout + "".join(f"! {line}\n" for line in done.stderr.splitlines())
    for pattern, word in DIFFERING:
        text = pattern.sub(word, text)
    text = text.replace(str(folder), "FOLDER")
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    return text + (f"[exit {done.returncode}]\n" if done.returncode else "")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_commands_print_what_they_did(path, tmp_path):
    for domain in (TESTS / "data" / "domains").glob("*.xml"):
        shutil.copy(domain, tmp_path)
    kept = path.read_text("utf-8")
    commands = re.findall(r"^\$ (.*)$", kept, re.MULTILINE)
    shown = "\n".join(f"$ {command}\n{played(command, tmp_path)}" for command in commands)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(shown, "utf-8")
    assert shown == path.read_text("utf-8")
