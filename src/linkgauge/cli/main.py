"""The command line: one file a command; this one joins them and turns errors into exit codes."""

from __future__ import annotations

import gc
import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from linkgauge.model.errors import LinkgaugeError

from .as_tool import CONTEXT, as_tool
from .capture import capture
from .copy import copy
from .devices import devices
from .doctor import doctor
from .list import list_benchmarks
from .run import run
from .show import show
from .traffic import traffic

app = typer.Typer(
    name="linkgauge",
    help="Measures how fast data moves between every pair of memories a machine can reach.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("devices")(devices)
app.command("capture")(capture)
app.command("list")(list_benchmarks)
app.command("run")(run)
app.command("copy")(copy)
app.command("traffic")(traffic)
app.command("show")(show)
app.command("doctor")(doctor)
app.command("as", context_settings=CONTEXT)(as_tool)


def _version(asked: bool) -> None:
    if asked:
        from linkgauge import __version__

        typer.echo(f"linkgauge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Measures how fast data moves between every pair of memories a machine can reach.

    Example: linkgauge run --profile quick
    """


def main() -> None:
    """Runs the command line. Exit codes: 0 all passed, 1 a failure, 2 bad usage or input, 3 an
    error cost results, 4 nothing measured, 130 after Ctrl-C."""
    _prepare_stdout()
    try:
        code = app(standalone_mode=False, prog_name="linkgauge")
        sys.stdout.flush()
    except typer.TyperException as error:  # usage: an unknown option, a missing value
        _complain(error.format_message())
        code = error.exit_code
    except LinkgaugeError as error:
        _complain(str(error))
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        _discard_stdout()  # its reader has seen enough
        code = 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "cannot write: "
        _complain(f"{where}{error.strerror}")
        _discard_stdout()
        code = 3
    gc.freeze()  # all of it goes with the process: to look it through first takes 30 ms and more
    sys.exit(code)


def _prepare_stdout() -> None:
    """Where it is closed nothing is shown; what its encoding lacks is shown as a question mark."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _discard_stdout() -> None:
    """What is still in its buffer would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    # A bare `linkgauge` is told how to use it, in full.
    print(message if message.startswith("Usage:") else f"linkgauge: {message}", file=sys.stderr)
