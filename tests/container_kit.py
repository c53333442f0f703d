"""Builds a Containerfile without a container runtime: its instructions, carried out in roots that
debootstrap made. As much of the language as the one here takes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Instruction(NamedTuple):
    word: str
    rest: str


class Stage(NamedTuple):
    """A FROM and what follows it; `name` is what later stages call it."""

    image: str
    name: str | None
    instructions: tuple[Instruction, ...]


def instructions(text: str) -> Iterator[Instruction]:
    """Lines that end with a backslash go on; comments and empty lines between them are nothing."""
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        word, _, rest = line.strip().partition(" ")
        yield Instruction(word.upper(), rest.strip())


def stages(text: str) -> tuple[dict[str, str], tuple[Stage, ...]]:
    """The arguments before the first FROM, and the stages."""
    defaults: dict[str, str] = {}
    found: list[Stage] = []
    for one in instructions(text):
        if one.word == "FROM":
            image, _, name = one.rest.partition(" AS ")
            found.append(Stage(expanded(image, defaults), name or None, ()))
        elif found:
            last = found[-1]
            found[-1] = last._replace(instructions=(*last.instructions, one))
        else:
            assert one.word == "ARG", one
            name, _, value = one.rest.partition("=")
            defaults[name] = value
    return defaults, tuple(found)


def expanded(text: str, values: Mapping[str, str]) -> str:
    """With $NAME and ${NAME} replaced; of a name without value nothing is left."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda m: values.get(m[1] or m[2], ""), text)


class Root:
    """A stage's file system, as it is while its instructions are carried out."""

    def __init__(
        self, folder: Path, context: Path, given: Mapping[str, str], surroundings: Mapping[str, str]
    ) -> None:
        """`given` are values for ARG; `surroundings` are what only this network needs."""
        self.folder, self._context, self._given = folder, context, given
        self._surroundings = surroundings
        self._work = "/"
        self._values = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def carry_out(self, one: Instruction, others: Mapping[str, Root]) -> None:
        """Raises CalledProcessError where a command fails."""
        if one.word in ("ARG", "ENV"):
            for pair in shlex.split(one.rest):
                name, _, value = pair.partition("=")
                value = expanded(value, self._values)
                self._values[name] = self._given.get(name, value) if one.word == "ARG" else value
        elif one.word == "WORKDIR":
            self._work = str(Path(self._work, expanded(one.rest, self._values)))
            self._below(self._work).mkdir(parents=True, exist_ok=True)
        elif one.word == "COPY":
            self._copy(shlex.split(expanded(one.rest, self._values)), others)
        elif one.word == "RUN":
            self.run(one.rest)
        else:
            assert one.word in ("ENTRYPOINT", "CMD"), one

    def run(self, command: str) -> str:
        """What the command prints, in the root, as a container's shell would run it."""
        words = ["chroot", self.folder, "/bin/sh", "-c", f'cd "{self._work}" && {command}']
        done = subprocess.run(
            words, env={**self._surroundings, **self._values, "HOME": "/root"},
            stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=1800, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"RUN {command}\n{done.stdout[-4000:]}"
        return done.stdout

    def _copy(self, words: list[str], others: Mapping[str, Root]) -> None:
        *flags, target = words
        origin = self._context
        if flags[0].startswith("--from="):
            origin = others[flags.pop(0).partition("=")[2]].folder
        for source in flags:
            place = origin / source.lstrip("/")
            into = self._below(str(Path(self._work, target)))
            into = into / place.name if target.endswith("/") else into
            into.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir():
                shutil.copytree(place, into, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(place, into)

    def _below(self, path: str) -> Path:
        return self.folder / path.lstrip("/")


def debian(folder: Path, suite: str, *, tarball: Path) -> None:
    """A minimal Debian in the folder; its packages are fetched once, into the tarball."""
    base = ["debootstrap", "--variant=minbase"]
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    if not tarball.exists():
        made = [*base, f"--make-tarball={tarball}", suite, folder.with_suffix(".tmp")]
        subprocess.run(made, check=True, capture_output=True, timeout=900, env=environment)
    unpacked = [*base, f"--unpack-tarball={tarball}", suite, folder]
    subprocess.run(unpacked, check=True, capture_output=True, timeout=900, env=environment)
