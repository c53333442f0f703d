"""Reads and writes captured machines. Archives may be hostile: sizes and paths are checked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

from linkgauge.machine.captures import zstd
from linkgauge.model.errors import InputError, unwritable

from ..private import new_private
from ..tree import Captured


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


MOST_MEMORY = 128 << 20
"""The bytes that unpacking may take in addition to the content; `xz -9` and `zstd --ultra -22` take
this much or less."""


class _Xz:
    """Reads .xz files with limited memory, because a hostile file could use up all memory."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._stream = self._new()

    def _new(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_MEMORY)

    def read(self, size: int, /) -> bytes:
        while True:
            data = b""
            if self._stream.eof:  # zeros, or one more stream, may follow
                data = self._stream.unused_data.lstrip(b"\0") or self._next().lstrip(b"\0")
                if not data:
                    return b""
                self._stream = self._new()
            elif self._stream.needs_input:
                data = self._next()
                if not data:
                    raise EOFError("it ends too soon")
            if content := self._stream.decompress(data, size):
                return content

    def _next(self) -> bytes:
        return self._packed.read(io.DEFAULT_BUFFER_SIZE)


MOST_BYTES = 256 << 20
MOST_MEMBERS = 200_000
"""The largest number of members in an archive. A captured machine has fewer."""
_LONGEST_PATH, _MOST_STEPS = 1024, 64
_MARKS = ("sys", "proc", "linkgauge")
"""A captured machine has at least one of these folders at its top."""
_DEEPEST = 2
"""The largest number of folders above the captured machine in an archive."""
_MOST_TOPS = 1000
_OPENERS: tuple[tuple[bytes, Callable[[BinaryIO], Readable]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", _Xz),
    (zstd.MAGIC, zstd.Unpacked),
)


STDOUT = Path("-")


def check_new(path: Path) -> None:
    """Raises InputError if the file exists, or if the path is `-` and stdout is a terminal."""
    if path == STDOUT and sys.stdout.isatty():
        raise InputError("- is a terminal: redirect stdout to a file or a pipe")
    if path != STDOUT and (path.is_file() or path.is_dir()):
        raise InputError(f"{path} exists: give another name, or remove it")


def write_archive(path: Path, tree: Captured) -> None:
    """Writes a .tgz of sorted members, without times and owners. Raises as `write_new` does."""
    write_new(path, pack(tree))


def write_new(path: Path, packed: bytes) -> None:
    """Writes an archive that only its owner can read, or writes it to stdout (`-`). Raises
    InputError if the file exists or cannot be created, and ResultsError if the disk is full."""
    try:
        if path == STDOUT:
            sys.stdout.buffer.write(packed)
            sys.stdout.flush()
            return
        check_new(path)
        # A device or a pipe is written to, a file made.
        with path.open("wb") if path.exists() else new_private(path) as file:
            file.write(packed)
    except OSError as error:
        raise unwritable(path, error) from error


def pack(tree: Captured) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream:
        stream.write(tar_of(tree))
    return packed.getvalue()


def tar_of(tree: Captured, mtime: int = 0) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        empty = (path for path, names in tree.folders.items() if path and not list(names))
        for name in sorted({*tree.files, *tree.links, *empty}):
            member, content = tarfile.TarInfo(name), tree.files.get(name, b"")
            member.mtime = mtime
            if name in tree.links:
                member.type, member.linkname = tarfile.SYMTYPE, tree.links[name]
            elif name in tree.files:
                member.size = len(content)
            else:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def read_archive(path: Path) -> Captured:
    """Reads .tar, .tgz, .tar.bz2, .tar.xz or .tar.zst. Raises InputError for other files."""
    return _unpacked(path, "give a folder or what `linkgauge capture` wrote").tree()


def read_files(path: Path, remedy: str) -> Mapping[str, bytes]:
    """Returns an archive's files by path. Raises InputError, with `remedy` if it is no archive."""
    return _unpacked(path, remedy).files


def _unpacked(path: Path, remedy: str) -> _Unpacked:
    try:
        with path.open("rb") as packed:
            magic = packed.peek(8)[:8]
            opener = next((o for begin, o in _OPENERS if magic.startswith(begin)), None)
            stream = packed if opener is None else opener(packed)
            with tarfile.open(fileobj=_BoundedContent(path, stream.read), mode="r|") as tar:
                return _Unpacked(path, tar)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise InputError(f"{path} is not an archive, or is damaged ({error}): {remedy}") from error


def top_of_machine(path: Path, names_in: Callable[[str], Iterable[str]]) -> str:
    """Returns the folder that holds the captured machine, with a slash at its end, or "" if that is
    the top. `names_in` lists a folder. Raises InputError unless there is exactly one machine."""
    tops = [""]
    for _ in range(_DEEPEST + 1):
        found = [top for top in tops if not set(_MARKS).isdisjoint(names_in(top.rstrip("/")))]
        if len(found) == 1:
            return found[0]
        if found:
            which = ", ".join(top.rstrip("/") for top in sorted(found)[:4])
            raise InputError(f"{path} holds {len(found)} machines: give one of them ({which})")
        tops = [f"{top}{name}/" for top in tops for name in names_in(top.rstrip("/"))]
        if len(tops) > _MOST_TOPS:
            break
    raise InputError(
        f"{path} holds no machine (no folder /sys or /proc): give a folder or what "
        "`linkgauge capture` wrote"
    )


class _BoundedContent(io.BytesIO):
    def __init__(self, path: Path, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._path, self._read, self._left = path, read, MOST_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        content = self._read(min(size or MOST_BYTES, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise _too_much(self._path, f"more than {MOST_BYTES >> 20} MiB")
        return content


class _Unpacked:
    def __init__(self, path: Path, tar: tarfile.TarFile) -> None:
        self._path, self._tar = path, tar
        self.files: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._folders: list[str] = []
        left = MOST_BYTES
        for count, member in enumerate(tar):
            # A sparse member is larger than what the archive holds of it.
            left -= member.size if member.isreg() else 0
            if left < 0:
                raise _too_much(self._path, f"more than {MOST_BYTES >> 20} MiB")
            if count == MOST_MEMBERS:
                raise _too_much(self._path, f"more than {MOST_MEMBERS} files")
            self._keep(member)

    def tree(self) -> Captured:
        folders = Captured(self.files, self._links, self._folders).folders
        top = top_of_machine(self._path, lambda folder: folders.get(folder, ()))
        return Captured(
            {p.removeprefix(top): c for p, c in self.files.items() if p.startswith(top)},
            {p.removeprefix(top): to for p, to in self._links.items() if p.startswith(top)},
            [p.removeprefix(top) for p in self._folders if p.startswith(top) and p != top],
        )

    def _keep(self, member: tarfile.TarInfo) -> None:
        name = self._checked(member.name)
        if member.issym():
            self._links[name] = member.linkname
        elif member.isdir():
            self._folders += [name] if name else []
        elif member.islnk():
            other = self._checked(member.linkname)
            if other in self.files:
                self.files[name] = self.files[other]
        elif member.isreg():
            stream = self._tar.extractfile(member)
            self.files[name] = b"" if stream is None else stream.read()

    def _checked(self, name: str) -> str:
        steps = [step for step in name.split("/") if step not in ("", ".")]
        if name.startswith("/") or ".." in steps:
            raise InputError(f"{self._path} holds {name[:80]!r}, which leads outside: not read")
        if len(name) > _LONGEST_PATH or len(steps) > _MOST_STEPS:
            raise _too_much(self._path, "longer paths than sysfs has")
        return "/".join(steps)


def _too_much(path: Path, what: str) -> InputError:
    return InputError(f"{path} holds {what}: it is not a captured machine")
