"""What a person gives is read up to a size, whatever it is."""

import os
import threading
from pathlib import Path

import pytest

from linkgauge.backends.sim.description import load, parse_description
from linkgauge.engine.kept.runs import read_run
from linkgauge.model.errors import InputError

READERS = {"machine": lambda path: load(str(path)), "show": read_run}


@pytest.mark.parametrize("reader", READERS)
def test_what_never_ends_or_nobody_writes_is_refused_at_once(reader, tmp_path):
    with pytest.raises(InputError, match=r"more than .* bytes|it is binary"):
        READERS[reader](Path("/dev/zero"))
    os.mkfifo(tmp_path / "pipe.yml")
    with pytest.raises(InputError, match="a pipe that no program writes to"):
        READERS[reader](tmp_path / "pipe.yml")


def test_a_pipe_that_somebody_writes_to_is_read_to_its_end():
    """As the shell's <(…) is, however late its content comes."""
    reading, writing = os.pipe()
    late = threading.Timer(0.05, lambda: (os.write(writing, b"a: 1\n"), os.close(writing)))
    late.start()
    assert load(f"/dev/fd/{reading}")[1] == "a: 1\n"
    late.join()
    os.close(reading)


def test_yaml_that_is_nested_too_deeply_is_called_that():
    with pytest.raises(InputError, match="it is nested too deeply"):
        parse_description("limits: " + "[" * 1000)


@pytest.mark.parametrize("text", ['host: "\\ud800"', '"\\udfff": a'])
def test_text_that_no_file_can_hold_is_refused(text):
    with pytest.raises(InputError, match="half of a character"):
        parse_description(text)
