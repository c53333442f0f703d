"""A rank of a training step beside the first: `python -m linkgauge.backends.workloads.rank`, or
what `linkgauge ai training_step` does in all processes of torchrun or mpiexec but the first."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from linkgauge.model.notation import parse_memory

from .launchers import Joined
from .ranks import COMMUNICATE, END, Ranks, from_environment
from .site import Site
from .training import Training


def follow(ranks: Ranks, site: Site) -> None:
    """Takes part in what rank 0 does, workload after workload, until that ends."""
    while (asked := ranks.share(None)) is not None:
        work = Training(site, asked, ranks)
        while (told := ranks.hear()) != END:
            if told == COMMUNICATE:
                work.communicate()
                continue
            ranks.barrier()
            for _ in range(told):
                work.run()
            site.synchronize()
        work.close()


def follow_launched(launched: Joined) -> None:
    """As a rank of torchrun or mpiexec."""
    torch = import_module("torch")
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    index = launched.local_rank if kind == "cuda" else 0
    site = Site(torch, f"{kind}:{index}", parse_memory(f"torch:{kind}:{index}"))
    ranks = Ranks(site, launched.rank, launched.size, from_environment())
    try:
        follow(ranks, site)
    finally:
        ranks.close()


def main() -> None:
    told = json.loads(sys.argv[1])
    torch, device = import_module("torch"), told["device"]
    name = device if ":" in device else f"{device}:0"
    site = Site(torch, device, parse_memory(f"torch:{name}"))
    ranks = Ranks(site, told["rank"], told["size"], told["meeting"])
    try:
        follow(ranks, site)
    except RuntimeError:  # rank 0 is gone, and so is the work
        sys.exit(1)
    ranks.close()


if __name__ == "__main__":
    main()
