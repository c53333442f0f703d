"""What a figure is of, as far as one figure tells another: the memories, the kind of engine, and
what it does with them. A machine that is described from a run knows figures of the kinds that the
run measured (rooms/describe/fitting.py), and refuses others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from linkgauge.backends.protocol import Copy
from linkgauge.model.errors import Unsupported
from linkgauge.model.names import and_all
from linkgauge.model.operations.operation import Operation
from linkgauge.model.recorded import SHORT
from linkgauge.model.transfer import Engine, Transfer


def check(known: Collection[str] | None, copies: Sequence[Copy], does: Operation) -> None:
    """Raises Unsupported for a figure of a kind that is not known. Null: all kinds are."""
    kind = "" if known is None else known_by([copy.transfer for copy in copies], does)
    if known is not None and kind not in known:
        raise Unsupported(f"not known of this machine: {kind}")


def known_by(transfers: Sequence[Transfer], does: Operation) -> str:
    """Names the kind of a figure: `copy of device and host by ce, both ways`. Copies in either
    direction are of one kind."""
    if does.collective is not None:
        is_short = transfers[0].scale <= SHORT
        return f"{'short ' if is_short else ''}{does.collective.collective}"
    what = "copy" if does.is_copy or does.array else str(does.name)
    if does.array and any(len(transfer.memories) < 2 for transfer in transfers):
        what = "access"
    memories = and_all(sorted({word for transfer in transfers for word in _places(transfer)}))
    engines = and_all(sorted({_engine(transfer.engine, does) for transfer in transfers}))
    ways = {(str(transfer.source), str(transfer.destination)) for transfer in transfers}
    both = any(one.both_ways for one in transfers) or any(
        a != b and (b, a) in ways for a, b in ways
    )
    beside = len({frozenset(way) for way in ways}) > 1
    turned = f"{', both ways' if both else ''}{', several at once' if beside else ''}"
    return f"{what} of {memories} by {engines}{turned}"


def _places(transfer: Transfer) -> Iterator[str]:
    kinds = sorted({memory.kind for memory in transfer.memories} - {""})
    places = {memory.place for memory in (*transfer.memories, transfer.engine.owner)}
    named = Counter(
        "device" if one.is_device else "CPU" if one.is_cpu else " ".join((*kinds, "host"))
        for one in places
    )
    yield from (word if count == 1 else f"two {word}s" for word, count in named.items())


def _engine(engine: Engine, does: Operation) -> str:
    if engine.kind != "cpu":
        return engine.kind
    threads = "one thread" if engine.count == 1 else "threads"
    return f"{threads} ({does.mode})" if does.mode else threads
