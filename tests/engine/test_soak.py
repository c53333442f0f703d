"""A controller that measures for long, while faults strike, grows no memory and no descriptors."""

import gc
import os
import random
from contextlib import closing
from pathlib import Path

from linkgauge.engine.controller import execute
from linkgauge.engine.kept.journal import Journal, assemble, read_records
from linkgauge.engine.workers.supervisor import Supervisor
from sim_kit import Silent, opened, planned, settings

CELLS = 2000 if os.environ.get("LINKGAUGE_CAMPAIGN") == "full" else 60
APART = 10
"""A device fails too seldom to be set aside."""
MOST_GROWTH = 10 << 20

SOFT = ("slow", "jitter", "stall", "drift")
HARD = ("crash", "crash", "nomem", "flip")
PHASES = ("allocate", "warm-up", "fill", "measure", "verify")
TRANSFERS = (
    ("sim:0 -> sim:1 by sm",),
    ("host:1 -> sim:2 by ce", "sim:2 -> host:0 by ce"),
    ("sim:3 <-> sim:0 by sm",),
    ("host:0 -> host:1 by cpu",),
    ("sim:1 -> null by sm",),
)
EXPECTED = {"crash": "error", "nomem": "error", "flip": "fail", "hang": "timeout"}


def random_faults(draw):
    """Every tenth cell has a hard fault, a few of which hang; soft ones are anywhere."""
    hard: dict[int, str] = {}
    for cell in range(APART // 2, CELLS, APART):
        kind = draw.choice(HARD) if cell % 500 >= APART else "hang"
        more = f" phase={draw.choice(PHASES)}" if kind != "flip" else ""
        more += f" signal={draw.choice(('SEGV', 'KILL'))}" if kind == "crash" else ""
        hard[cell] = f"{kind} *{more} cells={cell}"
    soft = [f"{draw.choice(SOFT)} sim:{draw.randrange(4)} cells={n}.." for n in range(0, CELLS, 50)]
    return hard, soft


def resident():
    """Bytes of this process that lie in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def children():
    return sum(len(p.read_text().split()) for p in Path("/proc/self/task").glob("*/children"))


def test_memory_and_descriptors_stay_as_they_were(tmp_path):
    hard, soft = random_faults(random.Random(4))
    how = settings(*hard.values(), *soft, timeout=2.0)
    cells = [planned(*TRANSFERS[n % len(TRANSFERS)], number=n) for n in range(CELLS)]
    path = tmp_path / "journal.jsonl"
    orphans = children()
    with closing(Supervisor(how)) as worker:
        first = opened(cells, how, worker.survey(["sim"]))
        with closing(Journal.begin(path, first)) as journal:
            before, files = resident(), descriptors()
            run = execute((first,), worker, journal.append, Silent())
            grown = resident() - before
            assert descriptors() == files
    assert children() == orphans
    assert assemble(read_records(path.read_bytes())) == run
    (result,) = run.results
    struck = {n: EXPECTED[fault.split()[0]] for n, fault in hard.items()}
    assert [c.status for c in result.cells] == [struck.get(n, "pass") for n in range(CELLS)]
    assert grown < MOST_GROWTH, grown
