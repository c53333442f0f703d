"""Zstandard by Python 3.14's module or by `zstandard`. Both refuse windows above 128 MiB."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

from ..extras import needed

MAGIC = b"\x28\xb5\x2f\xfd"
EXTRA = "pack"
_LEVEL = 9


def compressed(content: bytes) -> bytes:
    """Compresses equal content to equal bytes. Raises MissingPackage without Zstandard."""
    own = _own()
    if own is not None:
        return bytes(own.compress(content, _LEVEL))
    return bytes(needed("zstandard", EXTRA).ZstdCompressor(level=_LEVEL).compress(content))


class Unpacked:
    """Unpacks a file. Raises ValueError if it is damaged, and MissingPackage without Zstandard."""

    def __init__(self, packed: IO[bytes]) -> None:
        own = _own()
        self._error: type[Exception]
        self._read: Callable[[int], bytes]
        if own is not None:
            self._error, self._read = own.ZstdError, own.ZstdFile(packed).read
        else:
            package = needed("zstandard", EXTRA)
            reader = package.ZstdDecompressor().stream_reader(packed)
            self._error, self._read = package.ZstdError, reader.read

    def read(self, size: int, /) -> bytes:
        try:
            return self._read(size)
        except self._error as error:
            raise ValueError(str(error)) from error


def _own() -> Any:
    try:
        return import_module("compression.zstd")
    except ImportError:
        return None
