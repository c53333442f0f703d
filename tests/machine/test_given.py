"""What a person gives is read up to a size, whatever it is."""

import os
import threading
from pathlib import Path

import pytest

from linkgauge.backends.sim.description import load, parse_description
from linkgauge.engine.runs import read_run
from linkgauge.judge.limits import parse_limits, read_limits
from linkgauge.machine.given import MOST_YAML
from linkgauge.machine.hardware import read_hardware
from linkgauge.model.errors import InputError

READERS = {
    "machine": lambda path: load(str(path)),
    "limits": read_limits,
    "hardware": read_hardware,
    "show": read_run,
}
YAML = [name for name in READERS if name != "show"]


@pytest.mark.parametrize("reader", READERS)
def test_what_never_ends_is_refused(reader):
    with pytest.raises(InputError):
        READERS[reader](Path("/dev/zero"))


@pytest.mark.parametrize("reader", YAML)
def test_what_is_huge_is_refused_with_the_size(reader, tmp_path):
    path = tmp_path / "huge.yml"
    path.write_bytes(b"#" * (MOST_YAML + 1))
    with pytest.raises(InputError, match=f"more than {MOST_YAML} bytes"):
        READERS[reader](path)


def test_a_run_that_is_huge_is_refused_with_the_size(tmp_path, monkeypatch):
    monkeypatch.setattr("linkgauge.engine.runs.MOST_BYTES", 100)
    path = tmp_path / "run.json"
    path.write_bytes(b"{" * 101)
    with pytest.raises(InputError, match="more than 100 bytes"):
        read_run(path)


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_that_nobody_writes_to_is_refused_at_once(reader, tmp_path):
    os.mkfifo(tmp_path / "pipe.yml")
    with pytest.raises(InputError, match="a pipe that no program writes to"):
        READERS[reader](tmp_path / "pipe.yml")


def test_a_pipe_that_somebody_writes_to_is_read_to_its_end():
    """As the shell's <(…) is, however late its content comes."""
    reading, writing = os.pipe()
    late = threading.Timer(0.05, lambda: (os.write(writing, b"soc: X2\n"), os.close(writing)))
    late.start()
    assert read_hardware(Path(f"/dev/fd/{reading}")) == {"soc": "X2"}
    late.join()
    os.close(reading)


@pytest.mark.parametrize("read", [parse_limits, parse_description])
def test_yaml_that_is_nested_too_deeply_is_called_that(read):
    with pytest.raises(InputError, match="it is nested too deeply"):
        read("limits: " + "[" * 1000)


def test_a_hardware_yml_too(tmp_path):
    path = tmp_path / "deep.yml"
    path.write_text("soc: " + "[" * 1000)
    with pytest.raises(InputError, match="it is nested too deeply"):
        read_hardware(path)


@pytest.mark.parametrize("text", ['host: "\\ud800"', '"\\udfff": a'])
def test_text_that_no_file_can_hold_is_refused(text, tmp_path):
    path = tmp_path / "half.yml"
    path.write_text(text)
    for read in (read_hardware, lambda path: parse_description(path.read_text())):
        with pytest.raises(InputError, match="half of a character"):
            read(path)
