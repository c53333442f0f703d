"""Benchmarks that do the same in several ways, named together as a shell would:
`host_to_device_memcpy_{ce,sm}`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkgauge.model.grouped import grouped
from linkgauge.model.result import Result

from .results import size_ends

_ENGINES = ("ce", "sm")
_KERNELS = ("read", "write", "copy", "scale", "add", "triad")


class Family(NamedTuple):
    """Results with one name, and what each is called in it; empty of an only one."""

    name: str
    results: Sequence[Result]
    words: Sequence[str]

    @property
    def is_range(self) -> bool:
        """Whether its figures differ by more than the engine, so that no median tells anything."""
        alike = len(self.results) == 1 or tuple(self.words) == _ENGINES
        return not alike or any(one.sweep or one.levels for one in self.results)


def families_of(results: Sequence[Result], *, folded: bool = True) -> Iterator[Family]:
    """In the order of the first of each. A benchmark that was measured several times is one of its
    own; unless `folded`, each is."""
    by_name = grouped(((one.benchmark, one.backend), one) for one in results)
    found = grouped((_alike(own, folded=folded), own) for own in by_name.values())
    for (_, frame, *_), each in found.items():
        own = [one for repeated in each for one in repeated]
        if len(each) == 1:
            words = [size_ends(one) for one in own] if len(own) > 1 else [""]
            yield Family(own[0].benchmark, own, words)
        else:
            words = [_framed(one.benchmark)[1] for one in own]
            yield Family(frame.format(f"{{{','.join(words)}}}"), own, words)


def _alike(own: Sequence[Result], *, folded: bool) -> tuple[str, str, str, str, int]:
    """Equal for benchmarks that are one family."""
    first = own[0]
    only = "" if folded and len(own) == 1 else first.benchmark
    return only, _framed(first.benchmark)[0], first.backend, first.unit, first.size


def _framed(benchmark: str) -> tuple[str, str]:
    """The name with `{}` in place of the engine, else of what kernels do, and that word."""
    words = benchmark.replace("{", "").replace("}", "").split("_")
    for kind in (_ENGINES, _KERNELS):
        for at in reversed(range(len(words))):
            if words[at] in kind:
                return "_".join([*words[:at], "{}", *words[at + 1 :]]), words[at]
    return benchmark, ""
