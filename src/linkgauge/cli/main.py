"""Runs the command line: joins the commands, and turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import click

from linkgauge.engine.interrupts import end_like_ctrl_c
from linkgauge.hooks import CORE, Hook, unsaid
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.registry import additions, deferred, hook_of, loaded, named, our_rooms, plugins
from linkgauge.report.formats import GLANCE, Format

from . import streams
from .help_page import HelpCommand, page, sections
from .help_text import COMMANDS as OVERVIEW
from .help_text import OTHER, paragraphs
from .options import COMPLETES, Options, filled, instead
from .parameters import beforehand, parameters, typed

_CORE = {
    "devices": "linkgauge.cli.devices:devices",
    "list": "linkgauge.cli.list:list_benchmarks",
    "run": "linkgauge.cli.run:run",
    "copy": "linkgauge.cli.copy:copy",
    "latency": "linkgauge.cli.latency:latency",
    "show": "linkgauge.cli.show:show",
    "report": "linkgauge.cli.report:report",
    "doctor": "linkgauge.cli.doctor:doctor",
}
_OURS = _CORE | {name: place for room in our_rooms() for name, place in room.commands.items()}
_ORDER = (
    "devices", "expect", "describe", "capture", "list", "run", "copy", "latency", "traffic",
    "vary", "watch", "scale", "ai", "show", "report", "compare", "baseline", "gate", "export",
    "pack", "share", "history", "exporter", "doctor", "check", "vm", "as",
)  # fmt: skip
COMMANDS = {name: _OURS[name] for name in (*_ORDER, *sorted(_OURS.keys() - {*_ORDER}))}
"""Each command's module and function, in the order of the overview."""


_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""click's settings for every command, also for one that is carried out by itself."""


_ENDS = (click.ClickException, click.Abort, click.exceptions.Exit)


def command(name: str, place: str, hook: Hook = CORE) -> click.Command:
    """Makes a click command of the function at `place` (`module:function`), called through `hook`.
    Raises TypeError unless the function takes nothing or one struct of options."""
    carried = loaded(place)
    kinds = [kind for of, kind in get_type_hints(carried).items() if of != "return"]
    kind = kinds[0] if kinds else None
    if len(kinds) > 1 or not issubclass(kind or Options, Options):
        raise TypeError(f"{place} is no function of one struct of options")
    return HelpCommand(
        name,
        context_settings=_CONTEXT | getattr(sys.modules[carried.__module__], "CONTEXT", {}),
        params=[*parameters(kind)] if kind else [],
        callback=lambda **given: hook.exit_code(
            lambda: carried(*([typed(kind, given)] if kind else ())), _ENDS
        ),
        help=carried.__doc__,
    )


def all_commands() -> dict[str, str]:
    return COMMANDS | named("commands", _CORE)


_VERBOSE = f"{__name__}.verbose"


def _show_version() -> None:
    from linkgauge import __version__

    click.echo(f"linkgauge {__version__}")
    for plugin in plugins() if click.get_current_context().meta.get(_VERBOSE) else ():
        click.echo(f"{plugin.origin}: {', '.join(additions(plugin))}")


class RootOptions(Options):
    form: Annotated[Format, GLANCE]
    version: bool = instead(OTHER, "Show the version and exit.", _show_version, is_eager=False)
    verbose: bool = beforehand(
        OTHER,
        "With --version: also show plug-ins, and what they add.",
        _VERBOSE,
        flags="-v --verbose",
    )
    install_completion: bool = instead(
        OTHER,
        "Install completion for the current shell.",
        deferred("linkgauge.cli.completion:install"),
    )
    show_completion: bool = instead(
        OTHER,
        "Show completion for the current shell, to copy it or customize the installation.",
        deferred("linkgauge.cli.completion:show"),
    )


@click.pass_context
def _without_command(context: click.Context, /, **given: Any) -> int:
    form = filled(RootOptions, given).form
    if context.meta.get(_VERBOSE) and context.invoked_subcommand is not None:
        raise InputError(f"-v goes with --version: {context.info_name} --version -v")
    if context.invoked_subcommand is None:
        from .look import look

        with streams.printing():
            return look(form)
    if form.is_document:
        command = f"{context.info_name} {context.invoked_subcommand}"
        raise InputError(f"{form.flag} belongs behind the command: {command} {form.flag}")
    return 0


class Application(click.Group):
    """The command line. A command is loaded when it is named, because loading all takes 40 ms."""

    def loaded(self) -> dict[str, click.Command]:
        found = {name: self.get_command(click.Context(self), name) for name in all_commands()}
        return {name: one for name, one in found.items() if one is not None}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads `linkgauge help COMMAND` as `linkgauge COMMAND --help`."""
        asks_help = args[:1] == ["help"] and "help" not in all_commands()
        return super().parse_args(ctx, [*args[1:], "--help"] if asks_help else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command's name, the command and the other arguments. Raises InputError for an
        unknown command, and proposes a similar one."""
        known = all_commands()
        if ctx.resilient_parsing or args[0] in known or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        from .mistakes import unknown_command

        raise unknown_command(ctx, args[0], known)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*all_commands()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Returns a command; None if it is unknown, or its plug-in cannot be loaded."""
        if name not in self.commands and (place := all_commands().get(name)) is not None:
            hook = hook_of("commands", name, _CORE)
            made = hook.tried(partial(command, name, place, hook), None)
            if made is not None:
                self.add_command(made)
        return self.commands.get(name)

    def summaries(self) -> list[tuple[str, str]]:
        return [
            (name, text)
            for name, place in all_commands().items()
            for text in hook_of("commands", name, _CORE).tried(partial(_summary, place), ())
        ]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(page(self, ctx, {OVERVIEW: self.summaries(), **sections(self, ctx)}))


def _summary(place: str) -> tuple[str]:
    return (paragraphs(loaded(place).__doc__)[0],)


@cache
def application() -> Application:
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
    input; 3 an error cost results; 4 nothing was measured; 128 + N after signal N (130: Ctrl-C)."""
    interrupted = end_like_ctrl_c()
    streams.prepare()
    plugins()
    _complain_of_left_out()
    code = _carried_out()
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _unwritten(error) if code in _BELOW_UNWRITTEN else code
    _complain_of_left_out()
    if code == 130:
        code = interrupted()
    sys.exit(code)


def _carried_out() -> int:
    if COMPLETES in os.environ:
        import_module(".completion_shells", __package__)
    try:
        return application()(standalone_mode=False, prog_name="linkgauge") or 0
    except click.ClickException as error:  # usage: an unknown option, a missing value
        from .mistakes import said

        streams.complain(said(error))
        return error.exit_code
    except LinkgaugeError as error:
        streams.complain(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except OSError as error:
        return _unwritten(error)


_BELOW_UNWRITTEN = (0, 1, 4)
"""The exit codes after which output that could not be written makes the exit code 3."""


def _unwritten(error: OSError) -> int:
    where = f"{error.filename}: " if error.filename else "cannot write: "
    streams.complain(f"{where}{error.strerror}")
    streams.discard(sys.stdout.fileno())  # flushing its buffer would fail once more
    return 3


def _complain_of_left_out() -> None:
    for line in unsaid():
        streams.complain(line)
