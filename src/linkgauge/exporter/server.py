"""Serves the page over HTTP."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import NamedTuple

from linkgauge.model.errors import InputError

from .page import CONTENT_TYPE

PORT = 9410
"""NVIDIA's dcgm-exporter has 9400."""
LOOPBACK = "127.0.0.1"
_LISTEN = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]*):)?(?P<port>[0-9]{1,5})")
_INDEX = b"""<!doctype html><html lang="en"><title>linkgauge exporter</title>
<h1>linkgauge exporter</h1><p><a href="/metrics">Metrics</a></p></html>
"""


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> Address:
    """`127.0.0.1:9410`, `[::1]:9410`, or a port, which alone means this machine. Raises
    InputError."""
    match = _LISTEN.fullmatch(text.strip())
    if match is None or int(match["port"]) > 65535:
        raise InputError(f"--listen {text!r}: give ADDRESS:PORT, such as 127.0.0.1:{PORT}")
    return Address((match["host"] or "").strip("[]") or LOOPBACK, int(match["port"]))


class Server(ThreadingTCPServer):
    """A page at /metrics. Raises InputError where it cannot listen."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: Address, page: Callable[[bool], bytes]) -> None:
        """`page` is given whether to pack its text by gzip."""
        self.page = page
        try:
            found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
            self.address_family = found[0][0]
            super().__init__((address.host, address.port), _Handler)
        except OSError as error:
            raise InputError(f"cannot listen at {address}: {error.strerror}") from error
        self.at = Address(address.host, self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A scraper that goes away is not worth a traceback."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    """Seconds that a connection may be silent."""
    server: Server
    wbufsize = -1  # one packet for head and body

    def version_string(self) -> str:
        return "linkgauge"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            packed = "gzip" in self.headers.get("Accept-Encoding", "")
            self._answer(200, CONTENT_TYPE, self.server.page(packed), packed=packed)
        elif path == "/":
            self._answer(200, "text/html; charset=utf-8", _INDEX)
        else:
            self._answer(404, "text/plain; charset=utf-8", b"there is /metrics\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, kind: str, body: bytes, *, packed: bool = False) -> None:
        self.send_response(status)
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """A hundred scrapes a second are no news."""
