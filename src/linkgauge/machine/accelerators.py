"""Accelerators of a machine that was captured, or that is simulated: as their vendors' libraries
told of them where they could be asked. A real machine's libraries are the backends' matter."""

from __future__ import annotations

import msgspec

from linkgauge.model.inventory import Accelerator

from .tree import Root, read_text

ACCELERATORS = "linkgauge/accelerators.json"
"""Where a tree holds them: a JSON list of `Accelerator`."""

_decoder = msgspec.json.Decoder(tuple[Accelerator, ...])


def read_accelerators(root: Root) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """The accelerators that a tree holds, and why they cannot be read if that is so. Never raises:
    a tree without any has none."""
    text = read_text(root, ACCELERATORS)
    if text is None:
        return (), ()
    try:
        return _decoder.decode(text), ()
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return (), (f"accelerators: {ACCELERATORS} cannot be read: {error}: capture the tree anew",)


def accelerators_file(accelerators: tuple[Accelerator, ...]) -> bytes:
    """The content of the file that holds these."""
    return msgspec.json.format(msgspec.json.encode(accelerators))
