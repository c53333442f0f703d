"""What a shell proposes: names of options' values, escaped as the shell needs them."""

import os
import shutil
import subprocess
import sys

import pytest

from linkgauge.cli.completion_shells import escaped

ODD = "it's $(touch x);a,b *"
"""A label that must reach the command line as text."""
SCRIPT = """
eval "$(SHELL=bash linkgauge --show-completion)"
COMP_LINE=$1; COMP_POINT=${#COMP_LINE}
_linkgauge_completion linkgauge 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    for label in ("before", "after", ODD):
        run = folder / "results" / "cpu" / label / "20261121T201500Z"
        run.mkdir(parents=True)
        (run / "run.json").write_text("{}")
    (folder / "linkgauge").write_text(f'#!/bin/sh\nexec {sys.executable} -m linkgauge "$@"\n')
    (folder / "linkgauge").chmod(0o755)
    return folder


def proposed(folder, line):
    """What bash would insert in place of what it replaces."""
    surroundings = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", SCRIPT, "bash", line],
        capture_output=True, text=True, timeout=120, cwd=folder, env=surroundings, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("run --machine ppu-2x2 --device ", ["sim:0", "sim:3"]),
        ("run --machine ppu-2x2 --device sim:", ["0", "3"]),
        ("run --machine ppu-2x2 --device=sim:", ["0", "3"]),
        ("run --machine ppu-2x2 --device 'sim:", ["sim:0", "sim:3"]),
        ("run --machine fat-tree-10000 --fault slow", [r"slow\ sim:0"]),
        ("run --machine ppu-2x2 --fault ", [r"slow\ sim:0\ rate=25%", r"lost\ sim:0\ cells=10"]),
        ("run --machine ppu-2x2 --fault sl", [r"slow\ sim:0", r"slow\ \*", r"slow\ sim:3-root1"]),
        (r"run --machine ppu-2x2 --fault slow\ sim:3-", ["3-root1"]),
        ("run --machine ppu-2x2 --fault 'slow sim:3-", ["slow sim:3-root1"]),
        ("run --machine ppu-2x2 --fault 'slow sim:3 r", ["slow sim:3 rate=0.5"]),
        ("show ", ["after", "before", escaped(ODD)]),
        ("show be", ["before"]),
        ("show 'i", [ODD.replace("'", r"'\''")]),
        ("compare before ", ["after", "before"]),
        ("gate --baseline ", ["after", "before"]),
        ("run --profile q", ["quick"]),
    ],
)
def test_bash_proposes(line, some, kept):
    found = proposed(kept, f"linkgauge {line}")
    assert {*some} <= {*found}
    assert len(found) <= 1000, "no list of 80,000 devices"


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("line", ["run --machine nothing --device ", "run --fault melt"])
def test_of_what_is_wrong_nothing_is_proposed(line, kept):
    assert proposed(kept, f"linkgauge {line}") == [""]


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("text", [ODD, "=1", "~root", 'a"b`c`\\d', "Übung 1", "#x", "{a,b}", "a!b"])
def test_what_is_inserted_is_one_word_of_the_shell(text, quote):
    word = f"{quote}{escaped(text, quote)}{quote}"
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{text}\n"


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_no_proposal_opens_an_accelerator(shell, kept):
    """None of the libraries that open one is loaded, and no worker is started."""
    code = (
        "import sys; sys.argv = ['linkgauge']\n"
        "from linkgauge.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'pyopencl', 'cuda', 'torch', 'numpy', 'linkgauge.backends.cuda',\n"
        "         'linkgauge.engine.workers.process'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    words = "linkgauge run --device "
    asked = {
        "_LINKGAUGE_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_LINE": words,
        "COMP_CWORD": "" if shell == "fish" else "3",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, cwd=kept, env={**os.environ, **asked}, check=True,
    )  # fmt: skip
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("show it", [escaped(ODD)]),
        ("run device_local_r", ["device_local_read_sm"]),
        ("scale all_", ["all_reduce", "all_gather"]),
        ("vary --experiment p", ["pinned", "pages"]),
        ("vm --as ", ["guest", "host"]),
        ("vm --machine vm-", ["vm-degraded"]),
    ],
)
def test_a_script_of_an_earlier_version_gets_escaped_names_too(words, offered, kept):
    typed = ["linkgauge", *words.split(" ")]
    asked = {
        "_LINKGAUGE_COMPLETE": "bash_complete",
        "COMP_WORDS": "\n".join(typed),
        "COMP_CWORD": str(len(typed) - 1),
    }
    surroundings = {name: value for name, value in os.environ.items() if name != "COMP_LINE"}
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge"],
        capture_output=True, text=True, cwd=kept, env={**surroundings, **asked}, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"plain,{name}" for name in offered]
