"""A rank of a training step beside the first: a process that it has started, or what `linkgauge ai
training_step` does in all processes of torchrun or mpiexec but the first."""

from __future__ import annotations

from importlib import import_module

from linkgauge.machine.channel import Channel, carry_out, decoder
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import parse_memory

from .launchers import Joined
from .ranks import COMMUNICATE, END, Join, Ranks, from_environment
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


def serve(channel: Channel) -> None:
    """As a rank that the first one has started."""
    carry_out(decoder(Join)(channel.receive()), _join, channel.send)


def _join(asked: Join) -> None:
    torch, device = import_module("torch"), asked.device
    name = device if ":" in device else f"{device}:0"
    site = Site(torch, device, parse_memory(f"torch:{name}"))
    ranks = Ranks(site, asked.rank, asked.size, asked.meeting)
    try:
        follow(ranks, site)
    except RuntimeError as error:  # rank 0 is gone, and so is the work
        raise LinkgaugeError(str(error)) from error
    ranks.close()
