"""A rank of a training step beside the first: a process that it has started, or what `linkgauge ai
training_step` does in all processes of torchrun or mpiexec but the first."""

from __future__ import annotations

from importlib import import_module

from linkgauge.machine.processes.channel import Channel, carry_out, decoder
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import parse_memory

from .ranks import COMMUNICATE, END, Join, Ranks, TorchPlace, from_environment
from .site import Site
from .training import Training


def _follow(device: str, rank: int, size: int, meeting: str) -> None:
    """Takes part in rank 0's workloads, one after another, until rank 0 ends."""
    name = device if ":" in device else f"{device}:0"
    site = Site(import_module("torch"), device, parse_memory(f"torch:{name}"))
    ranks = Ranks(site, rank, size, meeting)
    try:
        while (asked := ranks.share(None)) is not None:
            work = Training(site, asked, ranks)
            while (heard := ranks.hear()) != END:
                if heard == COMMUNICATE:
                    work.communicate()
                    continue
                ranks.barrier()
                for _ in range(heard):
                    work.run()
                site.synchronize()
            work.close()
    except RuntimeError as error:  # rank 0 is gone, and so is the work
        raise LinkgaugeError(str(error)) from error
    ranks.close()


def follow_launched(launched: TorchPlace) -> None:
    is_cuda = import_module("torch").cuda.is_available()
    device = f"cuda:{launched.local_rank}" if is_cuda else "cpu"
    _follow(device, launched.rank, launched.size, from_environment())


def serve(channel: Channel) -> None:
    joining = decoder(Join)(channel.receive())
    carry_out(joining, lambda j: _follow(j.device, j.rank, j.size, j.meeting), channel.send)
