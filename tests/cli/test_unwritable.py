"""Output that cannot be written: a document is an error, a message changes no exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
RUN = "run device_local_copy --machine ppu-2x2 --size 1M --samples 1 --no-report"
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")


def ended(words, folder, out, err):
    """The exit code of `linkgauge WORDS`, with the streams to these files."""
    with Path(out).open("w") as stdout, Path(err).open("w") as stderr:
        done = subprocess.run(
            [sys.executable, "-m", "linkgauge", *words.split()],
            stdout=stdout, stderr=stderr, cwd=folder, timeout=120, check=False,
            env={**os.environ, "LINKGAUGE_HISTORY": "none"},
        )  # fmt: skip
    return done.returncode


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("run --bogus", 2), ("gate", 2), ("run nothing_such", 2), ("list", 0), (f"{RUN} --json", 0),
        (RUN, 0), (f"{RUN} --samples 2", 0), ("doctor --machine vm-degraded", 1),
        ("run device_to_device_memcpy_read_ce --machine vm-degraded", 4),
    ],
)  # fmt: skip
def test_a_message_that_cannot_be_written_changes_no_exit_code(words, code, tmp_path):
    assert ended(words, tmp_path, os.devnull, FULL) == code


@pytest.mark.parametrize(
    "words", ["--help", "list", "list --json", f"{RUN} --json", RUN, "doctor --machine vm-degraded"]
)
@pytest.mark.parametrize("err", [os.devnull, FULL])
def test_a_document_that_cannot_be_written_is_an_error(words, err, tmp_path):
    assert ended(words, tmp_path, FULL, err) == 3


def test_bad_usage_stays_bad_usage_whatever_cannot_be_written(tmp_path):
    assert ended("run --bogus", tmp_path, FULL, FULL) == 2


@pytest.mark.parametrize("words", ["list", "list --json"])
def test_the_line_about_it_says_why(words, tmp_path):
    assert ended(words, tmp_path, FULL, tmp_path / "err") == 3
    assert (tmp_path / "err").read_text() == "linkgauge: cannot write: No space left on device\n"


def test_without_stderr_messages_do_not_reach_the_document(tmp_path):
    with (tmp_path / "out").open("w") as out:
        done = subprocess.run(
            ["sh", "-c", f'exec "{sys.executable}" -m linkgauge {RUN} --size 2M 2>&-'],
            stdout=out, cwd=tmp_path, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert "the last one counts" not in (tmp_path / "out").read_text()
