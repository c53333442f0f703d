"""Options are declared once: a command names its parameters, and groups stand for several."""

import inspect
import re
from pathlib import Path

import pytest
import typer

from command_kit import called
from linkgauge.cli.main import COMMANDS
from linkgauge.cli.main import command as named
from linkgauge.cli.options import OPTIONS, Option, Sampling, Shape, Simulated, expanded, own
from linkgauge.model.errors import InputError


@own(by=Option("What does it.", "NAME"), size=Option("Of something else.", flag="--buffer"))
def command(*, size: str = "1M", by: str = "x", sampling: Sampling, wait: bool = False) -> int:
    assert isinstance(sampling, Sampling)
    return len(size) + (sampling.samples or 0)


def options_of(function):
    """By name: the declared option of each parameter."""
    signature = inspect.signature(function)
    return {
        name: parameter.annotation.__metadata__[0]
        for name, parameter in signature.parameters.items()
        if hasattr(parameter.annotation, "__metadata__")
    }


def test_a_group_stands_for_its_options_at_its_place():
    assert list(options_of(expanded(command))) == ["size", "by", *Sampling._fields, "wait"]


def test_a_command_gets_the_group_as_one_value():
    given = dict.fromkeys(Sampling._fields) | {"samples": 40, "size": "12"}
    assert expanded(command)(**given) == 42


def test_a_commands_own_option_goes_before_the_shared_one():
    found = options_of(expanded(command))
    assert (found["size"].default, found["size"].help) == ("--buffer", "Of something else.")
    assert (found["wait"].default, found["wait"].help) == ("--wait", OPTIONS["wait"].help)


@pytest.mark.parametrize("group", [Sampling, Shape, Simulated])
def test_every_option_of_a_group_is_declared(group):
    assert set(group._fields) <= set(OPTIONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_of_a_command_is_declared(name):
    parameters = inspect.signature(expanded(named(name)[0])).parameters
    undeclared = set(parameters) - set(options_of(expanded(named(name)[0])))
    assert undeclared <= {"context"}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_declares_as_its_own_it_has(name):
    function, _ = named(name)
    assert set(getattr(function, "own", {})) <= set(inspect.signature(function).parameters)


def test_no_two_options_of_a_command_share_a_flag():
    for name in COMMANDS:
        flags = [
            option.default
            for option in options_of(expanded(named(name)[0])).values()
            if isinstance(option, typer.models.OptionInfo)
        ]
        assert len(flags) == len(set(flags))


TIMES = [
    (command, option)
    for command in COMMANDS
    for option in options_of(expanded(named(command)[0])).values()
    if option.metavar in ("TIME", "SECONDS") or "timeout" in str(option.default)
]


def test_the_options_that_are_times_are_found():
    found = {f"{command} {option.default}" for command, option in TIMES}
    assert found >= {
        "run --max-time", "run --timeout", "run --for", "check --under", "watch --every",
        "watch --for", "traffic --duration", "exporter --refresh", "ai --timeout",
    }  # fmt: skip


@pytest.mark.parametrize(("command", "option"), TIMES)
def test_every_option_that_is_a_time_takes_seconds_and_units(command, option):
    assert option.metavar == "TIME"
    assert [option.parser(text) for text in ("5", "5s", "2m", "1h30m")] == [5, 5, 120, 5400]
    with pytest.raises(InputError, match=f"{option.default} 'soon' is not understood: write 30s"):
        option.parser("soon")


def test_a_time_with_a_unit_is_one_on_the_command_line():
    given = ("run", "--machine", "ppu-8", "--dry-run", "host_to_device_memcpy_ce")
    assert called(*given, "--max-time", "5s", "--timeout", "2m").returncode == 0
    refused = called(*given, "--max-time", "5x")
    assert refused.returncode == 2
    assert refused.stderr == (
        "linkgauge: --max-time '5x' is not understood: write 30s, 10m, 8h or 1h30m\n"
    )


def test_the_page_of_all_commands_says_which_have_json_and_csv():
    page = (Path(__file__).parents[2] / "docs/commands.md").read_text()
    said = page[page.index("The commands\n") : page.index("Exit codes are the same")]
    first, rest = said.split("have `--json` alone")
    alone, (_, *neither) = (re.findall("`([a-z]+)`", part) for part in (first, rest))
    has = {name: set(options_of(expanded(named(name)[0]))) for name in COMMANDS}
    assert set(alone) == {name for name, its in has.items() if its & {"json", "csv"} == {"json"}}
    own = {name for name, its in has.items() if not {"json", "csv", "as_json"} & its}
    assert set(neither) == own
    assert "as_json" in has["watch"]
