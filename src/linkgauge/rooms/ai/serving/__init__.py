"""Sends a server a fixed number of requests at once (closed loop), or at random times (open)."""

from __future__ import annotations

from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.workload import Workload

from .openai import Client, ServingGroup


def group_of(asked: Workload) -> ServingGroup:
    """Returns what loads the server. Raises Unsupported, MissingPackage, or BackendError if the
    server does not answer."""
    server = asked.server
    if asked.kind != "serving" or server is None:
        raise Unsupported("AI workloads are carried out by backend torch: linkgauge ai")
    client: Client
    if server.kind == "openai":
        from .openai import OpenAiClient

        client = OpenAiClient(server, asked)
    else:
        from .triton import TritonClient

        client = TritonClient(server, asked)
    return ServingGroup(asked, client)
