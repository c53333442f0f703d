"""Implements `--install-completion` and `--show-completion`, which let shells complete commands."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click import shell_completion

from linkgauge.model.errors import InputError

from . import completion_shells  # noqa: F401  # what shells read is registered there
from .options import COMPLETES

_PLACES = {
    "bash": ".bash_completions/linkgauge.sh",
    "zsh": ".zfunc/_linkgauge",
    "fish": ".config/fish/completions/linkgauge.fish",
}
"""The path of a shell's script below the home folder."""
_STARTS = {
    "bash": (".bashrc", "source ~/.bash_completions/linkgauge.sh"),
    "zsh": (".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
}
"""The file with which a shell starts, and the line in it that makes the shell read the script; fish
reads the script by itself."""


def install() -> None:
    shell = _shell()
    path = Path.home() / _PLACES[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_script(shell))
    if shell in _STARTS:
        name, line = _STARTS[shell]
        start = Path.home() / name
        text = start.read_text() if start.exists() else ""
        if line not in text:
            start.write_text(f"{text}\n{line}\n")
    print(f"{shell} completion installed in {path}")
    print("Completion will take effect once you restart the terminal")


def show() -> None:
    print(_script(_shell()))


def _shell() -> str:
    try:
        caller = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    except OSError:
        caller = ""
    users = Path(os.environ.get("SHELL", "")).name
    found = next((name for name in (caller, users) if name in _PLACES), None)
    if found is None:
        known = ", ".join(_PLACES)
        raise InputError(f"completion is for {known}: set SHELL to one, as in SHELL=bash")
    return found


def _script(shell: str) -> str:
    kind = shell_completion.get_completion_class(shell) or shell_completion.BashComplete
    return kind(click.Group(), {}, "linkgauge", COMPLETES).source()
