"""Compresses and unpacks Zstandard. Python's own module (3.14 and later) is used, or the package
`zstandard`. Both refuse windows above 128 MiB, which is libzstd's default limit."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

from ..extras import needed

MAGIC = b"\x28\xb5\x2f\xfd"
EXTRA = "pack"
_LEVEL = 9


def compressed(content: bytes) -> bytes:
    """Returns the content compressed; equal content gives equal bytes. Raises MissingPackage."""
    own = _own()
    if own is not None:
        return bytes(own.compress(content, _LEVEL))
    return bytes(needed("zstandard", EXTRA).ZstdCompressor(level=_LEVEL).compress(content))


class Unpacked:
    """A reader for a compressed file. Raises ValueError if the file is damaged, and MissingPackage
    if Zstandard is not installed."""

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
