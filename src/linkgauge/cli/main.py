"""Runs the command line. Each command has a file; this file joins the commands and turns errors
into exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Annotated, Any, TypeVar, get_type_hints

import click

from linkgauge.engine.interrupts import end_like_ctrl_c
from linkgauge.machine.processes.launch import is_heard
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.printable import printable
from linkgauge.registry import LEFT_OUT, additions, leave_out, named, origin_of, our_rooms, plugins
from linkgauge.report.formats import GLANCE, Format

from . import completion, streams
from .help_text import COMMANDS as OVERVIEW
from .help_text import OTHER, HelpCommand, page, paragraphs, sections
from .options import Options, beforehand, filled, instead, parameters

_T = TypeVar("_T")
_CORE = {
    "devices": ".devices:devices",
    "list": ".list:list_benchmarks",
    "run": ".run:run",
    "copy": ".copy:copy",
    "latency": ".latency:latency",
    "show": ".show:show",
    "report": ".report:report",
    "doctor": ".doctor:doctor",
}
_OURS = _CORE | {name: place for room in our_rooms() for name, place in room.commands.items()}
_ORDER = (
    "devices", "capture", "list", "run", "copy", "latency", "traffic", "vary", "watch", "scale",
    "ai", "show", "report", "compare", "baseline", "gate", "export", "pack", "share", "history",
    "exporter", "doctor", "check", "vm", "as",
)  # fmt: skip
COMMANDS = {name: _OURS[name] for name in (*_ORDER, *sorted(_OURS.keys() - {*_ORDER}))}
"""Each command's module and function, in the order of the overview."""


def carried_out_by(place: str) -> Callable[..., int]:
    """Loads and returns the function of a command."""
    module, _, function = place.partition(":")
    carried: Callable[..., int] = getattr(import_module(module, __package__), function)
    return carried


_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""click's settings for every command, also for one that is carried out by itself."""


def command(name: str, place: str) -> click.Command:
    """Makes a click command from a function with at most one parameter, which is a struct of
    options. click's settings are `CONTEXT` in the function's module. Raises TypeError for other
    functions."""
    carried = carried_out_by(place)
    kinds = [kind for of, kind in get_type_hints(carried).items() if of != "return"]
    if len(kinds) > 1 or not all(issubclass(kind, Options) for kind in kinds):
        raise TypeError(f"{place} is no function of one struct of options")
    return HelpCommand(
        name,
        context_settings=_CONTEXT | getattr(sys.modules[carried.__module__], "CONTEXT", {}),
        params=[one for kind in kinds for one in parameters(kind)],
        callback=lambda **given: carried(*(filled(kind, given) for kind in kinds)),
        help=carried.__doc__,
    )


def all_commands() -> dict[str, str]:
    """Returns the commands. Those of plug-ins come last."""
    return COMMANDS | named("commands", _CORE)


_MEANT = {"--port": "--listen", "--run": "--current", "--output": "--out", "--duration": "--for"}
"""The options that other tools call by these names."""
_NAMED = 4
"""The most commands that a message names."""
_VERBOSE = f"{__name__}.verbose"


def _show_version() -> None:
    from linkgauge import __version__

    click.echo(f"linkgauge {__version__}")
    for plugin in plugins() if click.get_current_context().meta.get(_VERBOSE) else ():
        click.echo(f"{plugin.origin}: {', '.join(additions(plugin))}")


class RootOptions(Options):
    """The options of linkgauge itself."""

    form: Annotated[Format, GLANCE]
    version: bool = instead(OTHER, "Show the version and exit.", _show_version, is_eager=False)
    verbose: bool = beforehand(
        OTHER, "With --version: also plug-ins, and what they add.", _VERBOSE, flags="-v --verbose"
    )
    install_completion: bool = instead(
        OTHER, "Install completion for the current shell.", completion.install
    )
    show_completion: bool = instead(
        OTHER,
        "Show completion for the current shell, to copy it or customize the installation.",
        completion.show,
    )


@click.pass_context
def _without_command(context: click.Context, /, **given: Any) -> int:
    """Looks at this machine, unless a command follows. Returns the exit code."""
    form = filled(RootOptions, given).form
    if context.invoked_subcommand is None:
        from .look import look

        with streams.printing():
            return look(form)
    if form.is_document:
        command = f"{context.info_name} {context.invoked_subcommand}"
        raise InputError(f"{form.flag} belongs behind the command: {command} {form.flag}")
    return 0


class Application(click.Group):
    """The command line. A command is loaded when it is named, because loading all of them takes
    40 ms."""

    def loaded(self) -> dict[str, click.Command]:
        """Loads and returns all commands, in the order of the overview."""
        found = {name: self.get_command(click.Context(self), name) for name in all_commands()}
        return {name: one for name, one in found.items() if one is not None}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command. Raises InputError with the most similar name for an unknown one."""
        known = all_commands()
        if ctx.resilient_parsing or args[0] in known or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        from linkgauge.model.names import hint

        otherwise = f": {ctx.command_path} --help lists them"
        raise InputError(f"unknown command {args[0]!r}{hint(args[0], known, otherwise)}")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*all_commands()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Returns a command, or None if there is none or a plug-in's does not load."""
        if name not in self.commands and (place := all_commands().get(name)) is not None:
            for made in _unless_left_out(command, name, place):
                self.add_command(made)
        return self.commands.get(name)

    def summaries(self) -> list[tuple[str, str]]:
        """Returns each command with the first paragraph of its help."""
        return [
            (name, paragraphs(loaded.__doc__)[0])
            for name, place in all_commands().items()
            for loaded in _unless_left_out(lambda _, where: carried_out_by(where), name, place)
        ]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(page(self, ctx, {OVERVIEW: self.summaries(), **sections(self, ctx)}))


def _unless_left_out(load: Callable[[str, str], _T], name: str, place: str) -> Iterator[_T]:
    """Yields what `load` makes of a command. Yields nothing if it is a plug-in's and fails."""
    try:
        yield load(name, place)
    except Exception as error:
        if name in COMMANDS:
            raise
        what = f"the command {name!r} of {origin_of('commands', name)}"
        leave_out(what, f"{type(error).__name__}: {error}")


@cache
def application() -> Application:
    """Makes the command line."""
    return Application(
        "linkgauge",
        params=[*parameters(RootOptions)],
        invoke_without_command=True,
        callback=_without_command,
        context_settings=_CONTEXT,
        help="""Measure how fast data moves between every pair of memories a machine can reach.

        Without a command: say what this machine is, what can be measured on it, and which commands
        fit it.

        Examples:
            linkgauge
            linkgauge run --profile quick
            linkgauge run --help
        """,
    )


def main() -> None:
    """Runs the command line. Exit codes: 0 all is well; 1 a failure or a low cell; 2 bad usage or
    input; 3 an error cost results; 4 nothing was measured; 130 after Ctrl-C, 143 after SIGTERM, 129
    after SIGHUP."""
    interrupted = end_like_ctrl_c()
    streams.prepare()
    plugins()
    said = _complain_of_left_out()
    try:
        code = application()(standalone_mode=False, prog_name="linkgauge")
        sys.stdout.flush()
    except click.ClickException as error:  # usage: an unknown option, a missing value
        _complain(_said(error))
        code = error.exit_code
    except LinkgaugeError as error:
        _complain(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "cannot write: "
        _complain(f"{where}{error.strerror}")
        streams.discard(sys.stdout.fileno())  # flushing its buffer would fail once more
        code = 3
    _complain_of_left_out(said)
    if code == 130:
        code = interrupted()
    sys.exit(code)


def _said(error: click.ClickException) -> str:
    """Returns the message for a mistake on the command line. For an unknown option, the message
    names similar options."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or context is None or not hasattr(error, "possibilities"):
        return error.format_message()
    from linkgauge.model.names import hint

    known = [name for one in context.command.params for name in one.opts]
    others = [name for name, one in application().loaded().items()
              if any(option in each.opts for each in one.params)]  # fmt: skip
    meant = _MEANT.get(option)
    if meant in known:
        near = f", did you mean {meant!r}?"
    elif others:
        more = "" if len(others) <= _NAMED else f" and {len(others) - _NAMED} more"
        near = f": {', '.join(others[:_NAMED])}{more} {'have' if others[1:] else 'has'} it"
    else:
        near = hint(option, known, f": {context.command_path} --help lists its options")
    return f"{context.command_path} has no option {option}{near}"


def _complain_of_left_out(said: int = 0) -> int:
    """Prints what was left out of plug-ins. The first `said` lines are skipped, because they were
    printed before. Returns the number of all lines."""
    for line in [*LEFT_OUT][said:]:
        _complain(line)
    return len(LEFT_OUT)


def _complain(message: str) -> None:
    if not is_heard(sys.argv):
        return
    click.echo(f"linkgauge: {printable(message, chr(10))}", err=True)
