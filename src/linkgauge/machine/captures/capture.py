"""Captures the files that linkgauge reads, and the output of libraries and tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

import linkgauge
from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.machine import Machine

from ..host import read_host
from ..interfaces import read_interfaces
from ..network_counters import CounterReader
from ..read_inventory import ACCELERATORS, accelerators_file, read_inventory
from ..software import SOFTWARE, Software, installed_packages, interfaces, read_software
from ..source import commit
from ..tools import FOLDER, ToolOutput, ask, commands_for
from ..tree import ROOT, Captured, Root
from ..virtual import read_virtual
from .file_rules import anonymize, without_secrets
from .manifest import MANIFEST, Manifest

# Records what the readers of a machine read, so that it can be read again elsewhere.

_OWN = "proc/self"
"""A link to the folder of this process. A capture stores it as a folder."""

Value = TypeVar("Value")


class _Recorded(Mapping[str, Value]):
    def __init__(self, ask: Callable[[str], Value | None]) -> None:
        self._ask = ask
        self._answers: dict[str, Value | None] = {}

    def __getitem__(self, path: str) -> Value:
        if path not in self._answers:
            self._answers[path] = self._ask(path)
        answer = self._answers[path]
        if answer is None:
            raise KeyError(path)
        return answer

    def __iter__(self) -> Iterator[str]:
        return (path for path, answer in self._answers.items() if answer is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Recorder(Captured):
    """A machine's files below `root`. It records each file, link and folder that is read."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.files = _Recorded(self._file)
        self.links = _Recorded(self._link)
        self.folders = _Recorded(self._names)

    def kept(self) -> Captured:
        inside = (
            f"{folder}/{name}".lstrip("/")
            for folder in tuple(self.folders)
            for name in self.folders[folder]
        )
        folders = [path for path in inside if path not in self.links and self._root.is_folder(path)]
        return Captured(dict(self.files), dict(self.links), folders)

    def _behind_link(self, path: str) -> bool:
        """Whether a path contains a link or `..`. Files are recorded only by their real paths."""
        steps = path.split("/")
        return ".." in steps or any(
            "/".join(steps[:end]) in self.links for end in range(1, len(steps) + 1)
        )

    def _file(self, path: str) -> bytes | None:
        return None if self._behind_link(path) else self._root.content(path)

    def _link(self, path: str) -> str | None:
        if ".." in path.split("/") or (self._root == ROOT and path == _OWN):
            return None
        return self._root.link_target(path)

    def _names(self, path: str) -> list[str] | None:
        return None if self._behind_link(path) else self._root.listed(path)


def capture(
    root: Root,
    machine: Machine,
    *,
    anonymous: bool = False,
    commands: tuple[tuple[str, ...], ...] | None = None,
) -> Captured:
    """Captures the machine below `root`, with the devices of `machine`. If `root` is this machine
    (ROOT), also runs `commands`, by default all tools that linkgauge knows. If `root` is a capture,
    copies the output of tools that the capture has."""
    recorder = Recorder(root)
    read_host(recorder)
    read_inventory(recorder)
    read_virtual(recorder)
    CounterReader(read_interfaces(recorder), recorder).read()
    software = read_software(recorder)
    if root == ROOT:
        tools, texts = ask(commands_for(interfaces()) if commands is None else commands)
        packages = installed_packages()
    else:
        tools, texts = _tools_of(root)
        packages = read_manifest(root).packages
    accelerators = machine.inventory.accelerators if machine.inventory else ()
    manifest = Manifest(
        commit=commit(Path(linkgauge.__file__)),
        anonymized=anonymous,
        simulated=machine.simulated,
        devices=machine.devices,
        unavailable=machine.unavailable,
        packages=packages,
        tools=tools,
    )
    own = {MANIFEST: _document(manifest), SOFTWARE: _document(software)}
    if accelerators:
        own[ACCELERATORS] = accelerators_file(accelerators)
    kept = recorder.kept()
    names = _names(kept) if root == ROOT else {}
    files = {**names, **kept.files, **texts, **own}
    files = {path: without_secrets(path, content) for path, content in files.items()}
    tree = Captured(files, kept.links, kept.folders)
    return anonymize(tree, _identities(machine, accelerators)) if anonymous else tree


def _document(value: Manifest | Software) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value))


def read_machine(root: Root) -> Machine:
    """Reads a machine from captured files. Ignores a damaged manifest."""
    manifest = read_manifest(root)
    return Machine(
        host=read_host(root),
        devices=manifest.devices,
        unavailable=manifest.unavailable,
        linkgauge=manifest.linkgauge,
        simulated=manifest.simulated,
        inventory=read_inventory(root),
    )


def read_manifest(root: Root) -> Manifest:
    """Returns a capture's manifest; an empty one if it is missing or damaged."""
    try:
        return msgspec.json.decode(root.content(MANIFEST) or b"", type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Manifest(linkgauge="")


def _tools_of(root: Root) -> tuple[tuple[ToolOutput, ...], dict[str, bytes]]:
    paths = (f"{FOLDER}/{name}" for name in root.names(FOLDER))
    texts = {path: text for path in paths if (text := root.content(path)) is not None}
    return read_manifest(root).tools, texts


def _names(kept: Captured) -> dict[str, bytes]:
    name = os.uname()
    texts = {"hostname": name.nodename, "osrelease": name.release, "arch": name.machine}
    return {
        f"proc/sys/kernel/{file}": f"{text}\n".encode()
        for file, text in texts.items()
        if f"proc/sys/kernel/{file}" not in kept.files
    }


def _identities(machine: Machine, accelerators: tuple[Accelerator, ...]) -> list[str]:
    names = [device.uuid for devices in machine.devices.values() for device in devices]
    return [name for name in (*names, *(one.uuid for one in accelerators)) if name]
