"""Run compute-sanitizer's memcheck and racecheck over every kernel, on this machine's first GPU.

Each entry point of src/linkgauge/kernels/*.cu is launched as the backend launches it, in each
variant, over buffers of exactly the bytes that it may touch, and every byte is compared. Exit
status: 0 clean, 1 a finding, wrong bytes or a kernel that did not run, 3 there is no sanitizer.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from importlib.resources import files

from linkgauge.backends.cuda.driver import open_driver
from linkgauge.model.errors import LinkgaugeError
from sanitize_cases import Ran, Recorder, run_kernels

TOOLS = ("memcheck", "racecheck")
FOUND = 86
"""Exit status of compute-sanitizer if it found something."""
TIMEOUT = 120.0
"""Time limit of one tool in seconds."""


def entry_points() -> list[str]:
    """Every kernel, as FILE.FUNCTION."""
    named = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\(\w+\)\s+)?(\w+)\(')
    return sorted(
        f"{file.name.removesuffix('.cu')}.{function}"
        for file in files("linkgauge.kernels").iterdir()
        if file.name.endswith(".cu")
        for function in named.findall(file.read_text())
    )


def read_ran(output: str) -> Ran:
    """The kernels that ran, from the output of `kernels`."""
    found = re.findall(r"^ran (\S+) (\d+) (\d+)$", output, re.MULTILINE)
    return {name: (int(variants), int(launches)) for name, variants, launches in found}


def problems_of(status: int | None, output: str) -> list[str]:
    """Why a tool's run is not clean; no status: it was stopped."""
    ran = read_ran(output)
    problems = [f"{name} did not run" for name in entry_points() if name not in ran]
    problems += re.findall(r"^wrong: .*$", output, re.MULTILINE)
    summary = re.search(r"SUMMARY: (\d+) (?:error|hazard)", output)
    if summary is None:
        problems.append("the tool gave no summary")
    elif summary[1] != "0":
        problems.append(f"{summary[0].removeprefix('SUMMARY: ')}(s) found")
    if status != 0 and not problems:
        problems.append(f"exit status {status}")
    return problems


def check(sanitizer: str, tool: str) -> bool:
    """Runs all kernels under one tool and reports the result; returns whether it is clean."""
    own = [sys.executable, __file__, "kernels"]
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), *own]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False
        )
        status, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        status, said = None, late.stdout or b""
    seconds = time.monotonic() - begin
    output = said.decode(errors="replace")
    problems = problems_of(status, output)
    print(f"{tool}: {'; '.join(problems) or 'clean'}, in {seconds:.1f} s")
    for name, (variants, launches) in read_ran(output).items():
        print(f"  {name:<16}{variants:>3} variants {launches:>5} launches")
    if problems:
        print(output)
    return not problems


def main() -> int:
    """Runs both tools, or with `kernels` what runs under them."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("what", nargs="?", choices=["tools", "kernels"], default="tools")
    parser.add_argument("--sanitizer", metavar="PATH", default="compute-sanitizer")
    options = parser.parse_args()
    if options.what == "tools":
        sanitizer = shutil.which(options.sanitizer)
        if sanitizer is None:
            print(f"sanitize: there is no {options.sanitizer}: install the CUDA toolkit's")
            return 3
        return min(1, sum(not check(sanitizer, tool) for tool in TOOLS))
    try:
        driver = Recorder(open_driver().enums)
        problems = run_kernels(driver)
    except LinkgaugeError as error:
        print(f"wrong: {error}")
        return 1
    ran = (f"ran {name} {of} {launches}" for name, (of, launches) in driver.ran().items())
    print("\n".join((*ran, *(f"wrong: {problem}" for problem in problems))))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
