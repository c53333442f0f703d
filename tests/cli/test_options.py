"""Options are declared once: a command names its parameters, and groups stand for several."""

import inspect

import pytest
import typer

from linkgauge.cli.main import COMMANDS
from linkgauge.cli.main import command as named
from linkgauge.cli.options import OPTIONS, Option, Sampling, Shape, Simulated, expanded, own


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
