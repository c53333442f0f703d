"""An option that takes one value is given several: none is dropped in silence."""

import shlex
from pathlib import Path

import click
import pytest

from command_kit import called
from linkgauge.cli.main import application
from linkgauge.cli.parameters import HelpOption

WRITTEN = {
    "--out", "-o", "--textfile", "--fix-script", "--write-limits", "--trace", "--nccl-topo",
}  # fmt: skip
"""The options that name what is written, not what is read."""


def options():
    """Each command's options that take one value."""
    for name, command in application().loaded().items():
        for one in command.params:
            if isinstance(one, HelpOption) and not (one.is_flag or one.multiple):
                yield name, one


@pytest.mark.parametrize("option", ["--baseline", "--current", "--machine", "--against", "--root"])
def test_options_that_choose_inputs_are_marked(option):
    found = [one for _, one in options() if option in one.opts]
    assert found
    assert all(one.is_input for one in found)


def test_what_names_a_file_to_read_is_an_input_and_what_names_one_to_write_is_not():
    files = [one for _, one in options() if isinstance(one.type, click.Path)]
    assert len(files) > 20
    for one in files:
        assert one.is_input != (one.opts[0] in WRITTEN), one.opts
        assert one.type.type is Path


INPUTS = sorted({(name, one.opts[0]) for name, one in options() if one.is_input})


@pytest.mark.parametrize(("command", "option"), INPUTS)
def test_two_inputs_are_refused_by_name(command, option, tmp_path):
    need = {"copy": "x -> y", "capture": "x", "as": "x", "judge": "-"}.get(command)
    first = [command, option, "one", option, "two"]
    done = called(*first, *([need] if need else []), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"linkgauge: {option} one {option} two: give only one\n"
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--size 1M --size 4M", "--size 1M --size 4M: the last one counts"),
        ("--size=1M --samples 9 --size 4M", "--size 1M --size 4M: the last one counts"),
        ("--size 4M --size 4M", None),
        ("--machine ppu-2x2 --size 4M", None),
        ("--no-verify --no-verify --size 4M", None),
        ("--prefix x --prefix device_local --size 4M", None),
    ],
)
def test_of_settings_the_last_counts_and_a_line_says_so(words, line, tmp_path):
    machine = [
        "--machine",
        "ppu-2x2",
        "--dry-run",
        *([] if "--prefix" in words else ["device_local_copy"]),
    ]
    words = words.replace("--prefix x ", "--prefix device_local_copy ")
    done = called("run", *machine, *shlex.split(words), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ("" if line is None else f"linkgauge: {line}\n")
    assert "4 MiB" in done.stdout
