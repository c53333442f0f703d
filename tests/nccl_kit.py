"""NCCL as a library that carries its calls out on the CPU."""

import ctypes
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace

from compiled_kit import own_library_of
from linkgauge.backends.cuda.nccl.library import Nccl

SOURCE = Path(__file__).parent / "fake_nccl.cpp"


def library_in(folder, *, since_2_28=True):
    """The library, with variables of its own in this folder."""
    since = "#define SINCE_2_28\n" if since_2_28 else ""
    loaded = ctypes.CDLL(str(own_library_of(since + SOURCE.read_text(), folder)))
    loaded.new_comm.restype = ctypes.c_void_p
    loaded.lines.restype = ctypes.c_char_p
    return loaded


class Core:
    """nccl4py's module: communicators of the fake library."""

    cliques = count()

    def __init__(self, library):
        self.library = library
        self.UniqueId = SimpleNamespace(from_bytes=lambda token: token)
        self.Communicator = SimpleNamespace(init=self.init)

    def get_unique_id(self):
        return next(self.cliques).to_bytes(8, "little")

    def init(self, ranks, rank, token):
        made = self.library.new_comm(int.from_bytes(token, "little"), rank, ranks)
        return SimpleNamespace(ptr=made, destroy=lambda: None)

    def group(self):
        return nullcontext()


def nccl_of(library):
    return Nccl(Core(library), library._name)
