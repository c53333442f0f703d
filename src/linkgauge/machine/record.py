"""Records what the readers of a machine read, so that it can be read again elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from .tree import ROOT, Captured, Root, link_target, listed, read_bytes

_OWN = "proc/self"
"""A link to the number of this process: recorded as the folder that it leads to."""

Value = TypeVar("Value")


class _Recorded(Mapping[str, Value]):
    """Values by path, each looked up when first requested."""

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
    """A machine below `root` that records what is read from it."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.files = _Recorded(self._file)
        self.links = _Recorded(self._link)
        self.folders = _Recorded(self._names)

    def kept(self) -> Captured:
        """Everything that was read, and the links and folders among the listed names."""
        inside = (
            f"{folder}/{name}".lstrip("/")
            for folder in tuple(self.folders)
            for name in self.folders[folder]
        )
        folders = [path for path in inside if path not in self.links and self._is_folder(path)]
        return Captured(dict(self.files), dict(self.links), folders)

    def _behind_link(self, path: str) -> bool:
        """Whether a step of the path is a link: its content is recorded at the link's target."""
        steps = path.split("/")
        return ".." in steps or any(
            "/".join(steps[:end]) in self.links for end in range(1, len(steps) + 1)
        )

    def _file(self, path: str) -> bytes | None:
        return None if self._behind_link(path) else read_bytes(self._root, path)

    def _link(self, path: str) -> str | None:
        if ".." in path.split("/") or (self._root == ROOT and path == _OWN):
            return None
        return link_target(self._root, path)

    def _names(self, path: str) -> list[str] | None:
        return None if self._behind_link(path) else listed(self._root, path)

    def _is_folder(self, path: str) -> bool:
        if isinstance(self._root, Captured):
            return path in self._root.folders
        return Path(self._root / path).is_dir()
