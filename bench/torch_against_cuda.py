"""Compare backend torch with backend cuda: every copy that both can do, on the same GPUs, in turns.

In each round both allocate buffers of their own, fill them, copy for some samples and verify what
was copied, in varying order, so that what drifts and what addresses do affects both alike. A ratio
is of two neighbours in time. The bar is 3 %, or the spread of cuda's own rounds if that is wider.
`--markdown` prints the rows of docs/benchmarks.md. Needs torch with CUDA, and linkgauge on
PYTHONPATH. Exit status: 0 all within the bar (or there is no torch with CUDA), 1 not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from statistics import median

import msgspec

from linkgauge.backends import open_backend
from linkgauge.backends.protocol import Backend, Buffer, Copy, Pattern, run
from linkgauge.machine.host import read_host
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import format_size, parse_sizes
from turns import Ratio, ratio, take_turns

BAR = 0.03
ROUNDS, SAMPLES = 9, 5
SAMPLE_SECONDS = 0.03
SIZES = "512M,64M"
ALONE = (
    "host:0 -> cuda:0 by ce",
    "cuda:0 -> host:0 by ce",
    "host:0/pageable -> cuda:0 by ce",
    "cuda:0 -> host:0/pageable by ce",
    "cuda:0 -> cuda:0 by ce",
    "host:0 -> cuda:0 by ce & cuda:0 -> host:0 by ce",
)
PAIR = (
    "cuda:0 -> cuda:1 by ce",
    "cuda:1 -> cuda:0 by ce",
    "cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce",
    "host:0 -> cuda:0 by ce & host:0 -> cuda:1 by ce",
    "cuda:0 -> host:0 by ce & cuda:1 -> host:0 by ce",
)


class Outcome(msgspec.Struct, frozen=True):
    """Bytes/s of each, the spread of cuda's rounds (relative), and the ratio of torch to cuda."""

    what: str
    torch: float
    cuda: float
    spread: float
    ratio: Ratio

    @property
    def bar(self) -> float:
        return max(BAR, self.spread)

    @property
    def holds(self) -> bool:
        return abs(self.ratio.middle - 1) <= self.bar

    def cells(self) -> Iterator[str]:
        yield self.what
        yield f"{self.torch / 1e9:.2f}"
        yield f"{self.cuda / 1e9:.2f}"
        yield f"{100 * self.spread:.1f} %"
        yield str(self.ratio)


def renamed(memory: Memory) -> Memory:
    """What backend torch calls a memory of backend cuda."""
    if not memory.is_device:
        return memory
    return Memory("torch:cuda", memory.index, memory.kind)


def once(backend: Backend, transfers: list[Transfer], size: int) -> float:
    """The rate of all transfers together over fresh buffers, bytes/s: the sum of the medians of
    their own. Raises AssertionError for a wrong byte."""
    with ExitStack() as held:

        def lend(memory: Memory, transfer: Transfer) -> Buffer:
            buffer = backend.allocate(memory, size, transfer.engine)
            held.callback(buffer.free)
            return buffer

        copies = [
            Copy(transfer, *(lend(memory, transfer) for memory in transfer.memories), size, number)
            for number, transfer in enumerate(transfers, 1)
        ]
        for copy in copies:
            for buffer in (copy.source, copy.destination):
                poison = buffer is copy.destination
                backend.fill(buffer, size, Pattern.WORDS, copy.seed, inverted=poison)
        group = held.enter_context(closing(backend.prepare(copies)))
        seconds: list[tuple[float, ...]] = []
        loops = 1
        for number in range(SAMPLES + 2):  # two to warm up, the second of which sets the loops
            taken = run(group, loops).seconds
            if number == 1:
                loops = max(2, min(round(SAMPLE_SECONDS / min(taken)), group.most_loops))
            elif number > 1:
                seconds.append(tuple(own / loops for own in taken))
        for copy in copies:
            wrong = backend.first_mismatch(copy.destination, size, Pattern.WORDS, copy.seed)
            assert wrong is None, f"{copy.transfer}: wrong at byte {wrong}"
        return sum(size / median(own) for own in zip(*seconds, strict=True))


def compare(cuda: Backend, torch: Backend, text: str, size: int, rounds: int) -> Outcome:
    """Raises LinkgaugeError for what one of them cannot do."""
    given = list(parse_transfers(text))
    theirs = [transfer.placed(renamed) for transfer in given]
    for backend, transfers in ((cuda, given), (torch, theirs)):
        for transfer in transfers:
            if (reason := backend.refusal(transfer)) is not None:
                raise reason if isinstance(reason, LinkgaugeError) else LinkgaugeError(reason)
    runs: dict[str, Callable[[], float]] = {
        "torch": lambda: once(torch, theirs, size),
        "cuda": lambda: once(cuda, given, size),
    }
    take_turns(runs, 1)
    taken = take_turns(runs, rounds)
    middle = median(taken["cuda"])
    spread = (max(taken["cuda"]) - min(taken["cuda"])) / middle
    apart = ratio(taken["torch"], taken["cuda"])
    return Outcome(f"{text}, {format_size(size)}", median(taken["torch"]), middle, spread, apart)


def main() -> int:
    """Prints each path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=SIZES, help="of the buffers")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table, too")
    options = parser.parse_args()
    try:
        found = import_module("torch")
    except ImportError as error:
        print(f"torch_against_cuda: skipped: {error}")
        return 0
    if not found.cuda.is_available():
        print("torch_against_cuda: skipped: torch has no CUDA device here")
        return 0
    outcomes: list[Outcome] = []
    host = read_host()
    with ExitStack() as opened:
        cuda, torch = (
            opened.enter_context(closing(open_backend(name, EngineSettings(), host)))
            for name in ("cuda", "torch")
        )
        (device, *others) = cuda.devices()
        print(f"{device.model}, {device.driver}; torch {found.__version__}, {options.rounds} turns")
        print(f"{'copy':<64}{'torch':>8}{'cuda':>9}  cuda's spread  ratio  (GB/s)")
        for size in parse_sizes(options.sizes):
            for text in (*ALONE, *(PAIR if others else ())):
                try:
                    outcomes.append(compare(cuda, torch, text, size, options.rounds))
                except LinkgaugeError as reason:
                    print(f"{text}: skipped: {reason}")
                    continue
                what, ours, theirs, spread, apart = outcomes[-1].cells()
                missed = "" if outcomes[-1].holds else "  MISSED"
                print(f"{what:<64}{ours:>8}{theirs:>9}{spread:>8}  {apart}{missed}", flush=True)
    if options.markdown:
        for one in outcomes:
            print(f"| {' | '.join(one.cells())} |")
    missed_ones = sum(not one.holds for one in outcomes)
    print(f"{len(outcomes) - missed_ones} of {len(outcomes)} within 3 %, or cuda's own spread")
    return 1 if missed_ones or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
