"""Loads a server with a fixed number of concurrent requests, or with requests at random times."""

from __future__ import annotations

from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.workload import Workload

from .openai import Client, ServingGroup


def group_of(asked: Workload) -> ServingGroup:
    """Returns a group that sends requests to the workload's server. Raises Unsupported if the
    workload has no server, MissingPackage, or BackendError if the server does not answer."""
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
