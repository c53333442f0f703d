"""Sends inferences with random inputs to a Triton Inference Server, by HTTP or gRPC."""

from __future__ import annotations

import threading
import time
from importlib import import_module
from math import prod
from typing import Any

from linkgauge.model.errors import BackendError, MissingPackage
from linkgauge.model.operations.workload import Server, Workload

from .openai import Answer

_MOST_NUMBERS = 1 << 24
"""The most numbers of an input. A number takes up to 8 bytes, and 8 more while it is drawn."""


class TritonClient:
    """A client for a Triton server, with a connection per thread. Variable dimensions become 1."""

    def __init__(self, server: Server, asked: Workload) -> None:
        kind = server.kind.removeprefix("triton-")
        try:
            self._module = import_module(f"tritonclient.{kind}")
            self._numpy = import_module("numpy")
            self._type_of = import_module("tritonclient.utils").triton_to_np_dtype
        except ImportError as error:
            raise MissingPackage(f"tritonclient[{kind}]", "serving") from error
        self._address = server.url.partition("://")[2] or server.url
        self._grpc, self._own = kind == "grpc", threading.local()
        self._opened: list[Any] = []
        try:
            self._name = server.model or self._first_model()
            metadata = self._client().get_model_metadata(self._name)
            self._inputs = [self._drawn(one, asked.seed) for one in _of(metadata, "inputs")]
        except Exception as error:  # of either library, which have no base in common
            self.close()
            why = f"{type(error).__name__}: {error}"
            raise BackendError(f"Triton at {server.url}", why) from error

    def _first_model(self) -> str:
        index = self._client().get_model_repository_index()
        for one in index.models if self._grpc else index:
            return str(_of(one, "name"))
        raise ValueError("the server has no model")

    def _drawn(self, metadata: Any, seed: int) -> Any:
        shape = [max(1, int(size)) for size in _of(metadata, "shape")]
        name, kind = (str(_of(metadata, what)) for what in ("name", "datatype"))
        if prod(shape) > _MOST_NUMBERS:
            raise ValueError(f"input {name} has more than {_MOST_NUMBERS} numbers: {shape}")
        tensor = self._module.InferInput(name, shape, kind)
        numbers = self._numpy.random.default_rng(seed).integers(0, 2, shape)
        tensor.set_data_from_numpy(numbers.astype(self._type_of(kind)))
        return tensor

    def _client(self) -> Any:
        if not hasattr(self._own, "client"):
            self._own.client = self._module.InferenceServerClient(self._address)
            self._opened.append(self._own.client)
        return self._own.client

    def request(self, number: int) -> Answer:
        try:
            self._client().infer(self._name, self._inputs)
        except Exception as error:
            what = f"inference of {self._name}, request {number}"
            raise BackendError(what, str(error)) from error
        return Answer(time.monotonic())

    def close(self) -> None:
        for client in self._opened:
            client.close()


def _of(metadata: Any, name: str) -> Any:
    return metadata[name] if isinstance(metadata, dict) else getattr(metadata, name)
