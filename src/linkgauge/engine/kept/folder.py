"""A run's folder: `<out>/<accelerator>/<label>/<run id>/`. It is always newly created."""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import suppress
from pathlib import Path

from linkgauge.engine.plan import Plan, able
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.printable import printable

LONGEST_LABEL = 64
NO_DEVICE = "cpu"
"""The folder of runs without an accelerator."""


def slug(text: str, otherwise: str) -> str:
    """Returns a safe folder name of lower-case letters, digits, non-ASCII symbols, dots and dashes.
    Latin letters lose their accents. Returns `otherwise` if nothing is left."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).lower())
    plain = unicodedata.normalize("NFC", plain)
    name = "".join(char if _is_kept(char) else " " for char in plain)
    name = "-".join(name.split()).strip("-.")[:64]
    name = name.encode()[:_MOST_BYTES].decode(errors="ignore").strip("-.")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:  # file names here have no such letters
        return otherwise
    return name or otherwise


_MOST_BYTES = 192
"""The most bytes of a name; file systems allow 255."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")


def _is_kept(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char == "."
    return unicodedata.category(char)[0] in "LMNS"


def accelerator_name(machine: Machine, plan: Plan) -> str:
    """Returns the folder name for a run: the model of the first measured device, `cpu` if only host
    memory or CPUs are measured, or `simulated-NAME` for a simulated machine."""
    if machine.simulated is not None:
        return f"simulated-{slug(machine.simulated, 'machine')}"
    known = (device for devices in machine.devices.values() for device in devices)
    models = {device.memory: device.model for device in known if not device.is_cpu}
    places = (place for _, cell in able(plan) for place in cell.places)
    return next((slug(models[str(p)], p.backend) for p in places if str(p) in models), NO_DEVICE)


def accelerator_of(machine: Machine) -> str:
    """Returns the folder name for the machine's first accelerator, for callers without a plan."""
    if machine.simulated is not None:
        return f"simulated-{slug(machine.simulated, 'machine')}"
    models = (device.model for device in machine.all_devices if not device.is_cpu)
    return next((slug(model, "device") for model in models), NO_DEVICE)


def checked_label(text: str) -> str:
    """Returns the label if a new run may have it. Raises InputError otherwise."""
    is_good = text.isprintable() and text.strip() and ".." not in text.split("/")
    if not is_good or len(text) > LONGEST_LABEL:
        shown = printable(text[:LONGEST_LABEL]) + ("…" if len(text) > LONGEST_LABEL else "")
        what = f"1 to {LONGEST_LABEL} printable characters, and no '..' between slashes"
        raise InputError(f"'{shown}' is no label: give {what}")
    return text


def label_name(label: str) -> str:
    """Returns a label's folder name: the label itself if it is a plain name, else its slug."""
    return label if _PLAIN.fullmatch(label) else slug(label, "default")


def check_writable(out: Path) -> None:
    """Raises InputError if this folder cannot be created or written to."""
    there = next(filter(Path.exists, (out.absolute(), *out.absolute().parents)))
    probe = there / f".linkgauge-{os.getpid()}"
    try:
        probe.mkdir(exist_ok=True)  # root may write where a file system refuses it
        with suppress(FileNotFoundError):  # another host has a process of this number
            probe.rmdir()
    except OSError as error:
        named = OSError(error.errno, error.strerror, str(there))
        raise _unwritable(out, named) from error


def _unwritable(out: Path, error: OSError) -> InputError:
    return InputError(f"cannot write results to {out}: {error.strerror} ({error.filename})")


def create_run_folder(out: Path, accelerator: str, label: str, started: str) -> Path:
    """Creates a new folder, named by the start time. Raises InputError if this fails."""
    parent = out / accelerator / label_name(label)
    stamp = re.sub(r"[-:]|\.\d+", "", started)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise _unwritable(out, error) from error
    raise InputError(f"cannot find a free name for the run in {parent}")


def keep_topology(folder: Path, machine: Machine) -> None:
    """Writes the machine's topology files. Raises ResultsError if they cannot be written."""
    from linkgauge.machine.tools import topology_files

    for name, text in topology_files(machine).items():
        try:
            (folder / name).write_text(text)
        except OSError as error:
            raise ResultsError(f"cannot write {folder / name}: {error.strerror}") from error
