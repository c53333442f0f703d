"""Accelerators of a captured or simulated machine, as their vendors' libraries reported them where
these could be queried. On a real machine, the backends query the libraries."""

from __future__ import annotations

import msgspec

from linkgauge.model.gaps import Gap
from linkgauge.model.inventory import Accelerator
from linkgauge.model.notation import decode_hook, encode_hook

from .tree import Root, read_text

ACCELERATORS = "linkgauge/accelerators.json"
"""The file of a tree that holds them: a JSON list of `Accelerator`."""

_decoder = msgspec.json.Decoder(tuple[Accelerator, ...], dec_hook=decode_hook())


def read_accelerators(root: Root) -> tuple[tuple[Accelerator, ...], tuple[Gap, ...]]:
    """The accelerators that a tree holds, and why they cannot be read, if so. Never raises: a tree
    without the file has none."""
    text = read_text(root, ACCELERATORS)
    if text is None:
        return (), ()
    try:
        return _decoder.decode(text), ()
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        why = f"{ACCELERATORS} cannot be read: {error}: capture the machine again"
        return (), (Gap(why, "accelerators"),)


def accelerators_file(accelerators: tuple[Accelerator, ...]) -> bytes:
    """The content of the file that holds these accelerators."""
    return msgspec.json.format(msgspec.json.encode(accelerators, enc_hook=encode_hook))
