"""A run's own folder: `<out>/<accelerator>/<label>/<run id>/`, created exclusively."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from linkgauge.model.errors import InputError
from linkgauge.model.machine import Machine

from .plan import Plan, able


def slug(text: str, otherwise: str) -> str:
    """A safe name for a folder: lower-case letters and digits of any script, dots and dashes; Latin
    letters without their accents."""
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
"""Of a name: file systems take 255."""
_ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")


def _is_kept(char: str) -> bool:
    """Letters, their marks, digits and, beyond ASCII, symbols."""
    if char.isascii():
        return char.isalnum() or char == "."
    return unicodedata.category(char)[0] in "LMNS"


def accelerator_name(machine: Machine, plan: Plan) -> str:
    """The model of the first measured device, `cpu` if there is none; for a simulated machine
    `simulated-` and its name."""
    if machine.simulated is not None:
        return f"simulated-{slug(machine.simulated, 'machine')}"
    models = {d.memory: d.model for devices in machine.devices.values() for d in devices}
    places = (place for _, cell in able(plan) for place in cell.places)
    return next((slug(models[str(p)], p.backend) for p in places if str(p) in models), "cpu")


def create_run_folder(out: Path, accelerator: str, label: str, started: str) -> Path:
    """Creates a new folder. The run id is the start time, with a number appended if it is taken.

    Raises InputError if it cannot be written.
    """
    parent = out / accelerator / slug(label, "default")
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
        raise InputError(
            f"cannot write results to {out}: {error.strerror} ({error.filename})"
        ) from error
    raise InputError(f"cannot find a free name for the run in {parent}")
