"""The command `linkgauge mcp`: answers agents over stdin and stdout."""

from __future__ import annotations

from linkgauge.cli.options import Options


class McpOptions(Options):
    pass


def mcp(asked: McpOptions) -> int:
    """Offer judge, expect, doctor, show and devices to AI agents (MCP).

    Speaks the Model Context Protocol over stdin and stdout until stdin ends. No tool measures or
    changes anything.

    Examples:
        linkgauge mcp"""
    from .tools import make_server

    make_server().run("stdio")
    return 0
