"""Puts load on an inference server: concurrent requests, or requests at random times."""

from __future__ import annotations

from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.workload import Workload

from .openai import OpenAiClient, ServingGroup


def group_of(asked: Workload) -> ServingGroup:
    """Returns a group that sends requests to the workload's server. Raises Unsupported if the
    workload has no server, MissingPackage, or BackendError if the server does not answer."""
    server = asked.server
    if asked.kind != "serving" or server is None:
        raise Unsupported("AI workloads are carried out by backend torch: linkgauge ai")
    if server.kind == "openai":
        return ServingGroup(asked, OpenAiClient(server, asked))
    from .triton import TritonClient

    return ServingGroup(asked, TritonClient(server, asked))
