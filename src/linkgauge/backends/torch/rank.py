"""A rank with one device of torch, for collectives by torch.distributed. Ranks on one machine find
each other by a file, others by a socket. Each rank measures until its device has finished."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from linkgauge.backends import open_backend
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rank import IdlePart, OfProcess
from linkgauge.backends.rules import of_part, refused
from linkgauge.backends.torch import TorchBackend
from linkgauge.backends.torch.collectives import TorchCollective, library_of
from linkgauge.backends.torch.runtime import calling
from linkgauge.machine.host import read_host
from linkgauge.machine.processes.launch import Launch
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_memory
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Transfer

DEADLINE_SECONDS = timedelta(seconds=60)
"""The time for which ranks wait for each other in a call."""


def create(
    launch: Launch, settings: Settings, hosts: Sequence[str], *, with_gpu: bool
) -> TorchRank:
    """Opens a rank on its own device or on the CPU. Raises Unsupported if devices are too few."""
    backend = cast("TorchBackend", open_backend("torch", settings.engines, read_host()))
    devices = [device for device in backend.devices() if not device.is_cpu]
    if not devices:
        return TorchRank(launch, backend, backend.devices()[0])
    if launch.local_rank >= len(devices):
        raise Unsupported(f"torch has {len(devices)} devices here: rank {launch.rank} has none")
    return TorchRank(launch, backend, devices[launch.local_rank])


class TorchRank(OfProcess):
    """A rank that carries out only collectives, as torch cannot copy between processes."""

    backend: TorchBackend

    def __init__(self, launch: Launch, backend: TorchBackend, device: Device) -> None:
        super().__init__(launch.rank, backend, device)
        self._launch = launch
        self._unit = backend.unit(parse_memory(device.memory))
        self._joined: bytes | None = None
        self._times: dict[bytes, int] = {}
        """The number of times that each token was joined."""
        self._stores: dict[bytes, Any] = {}
        self._folder: Path | None = None
        self._said: tuple[str, ...] = ()

    @property
    def _distributed(self) -> Any:
        found = import_module("torch.distributed")
        if not found.is_available():
            raise Unsupported("this torch was made without torch.distributed")
        return found

    def refusal(self, transfer: Transfer) -> str | Unsupported | None:
        if transfer.engine.kind != "ccl":
            return super().refusal(transfer)
        return refused([of_part(transfer)])

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return self._said if transfer.engine.kind == "ccl" else super().remarks(transfer)

    def token(self) -> bytes:
        """Returns the address of a file or socket by which a group's ranks find each other."""
        distributed = self._distributed
        if self._launch.on_one_machine:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="linkgauge-"))
            return f"file:{self._folder / f'store-{len(self._stores)}'}".encode()
        host = socket.gethostname()
        with calling("TCPStore"):
            store = distributed.TCPStore(host, 0, is_master=True, wait_for_workers=False)
        token = f"tcp:{host}:{store.port}".encode()
        self._stores[token] = store
        return token

    def prepare(self, copies: Sequence[Copy], operation: OperationName = "copy") -> Group:
        if not isinstance(operation, Collective):
            return super().prepare(copies, operation)
        mine = self.places(copies)
        if not mine:
            return IdlePart()
        (place,) = mine
        groups = operation.groups(len(copies))
        number = next(at for at, ranks in enumerate(groups) if place in ranks)
        ranks = groups[number]
        self._join(self.tokens[number], ranks.index(place), len(ranks))
        own = self.copy(copies[place])
        found = TorchCollective(self._distributed, self._unit, operation, own, place)
        self._said = found.remarks
        return found

    def _join(self, token: bytes, rank: int, ranks: int) -> None:
        if token == self._joined:
            return
        self._leave()
        distributed, kind = self._distributed, library_of(self._unit)
        if self._launch.on_one_machine:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._times[token] = self._times.get(token, 0) + 1
        way, _, where = token.decode().partition(":")
        with calling("init_process_group"):
            if way == "file":
                store = self._stores.setdefault(token, distributed.FileStore(where, -1))
            else:
                host, _, port = where.rpartition(":")
                store = self._stores.get(token) or distributed.TCPStore(host, int(port))
                self._stores[token] = store
            prefixed = distributed.PrefixStore(str(self._times[token]), store)
            distributed.init_process_group(
                kind, store=prefixed, rank=rank, world_size=ranks, timeout=DEADLINE_SECONDS
            )
        self._joined = token

    def _leave(self) -> None:
        if self._joined is not None:
            self._joined = None
            with calling("destroy_process_group"):
                self._distributed.destroy_process_group()

    def close(self) -> None:
        super().close()
        self._leave()
        self._stores.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
