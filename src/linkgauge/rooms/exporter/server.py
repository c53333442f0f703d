"""Serves the page that Prometheus scrapes. Keeps its parts as text until their sources change."""

from __future__ import annotations

import gzip
import ipaddress
import re
import resource
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Lock
from typing import Any, NamedTuple

import linkgauge
from linkgauge.machine.extras import needed
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.live import InventoryReading

from .families import END, Families, add_ages, of_machine, of_results
from .machine import DEADLINE_SECONDS, MachineSource, PeriodicReader, Say, TimedReading
from .results import Results, ResultSource

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class PageForm(NamedTuple):
    is_open: bool = False
    packed: bool = False

    @property
    def content_type(self) -> str:
        return OPEN_TYPE if self.is_open else CONTENT_TYPE


PLAIN = PageForm()


def form_for(accept: str, encoding: str) -> PageForm:
    choose = needed("prometheus_client.exposition", "exporter").choose_encoder
    kind = choose(accept)[1]
    is_open = kind.startswith(OPEN_TYPE.partition(";")[0])
    return PageForm(is_open, "gzip" in encoding)


class _Part:
    def __init__(self, of: Any, make: Callable[[], Families]) -> None:
        self.of, self.make = of, make
        self._lock, self._text = Lock(), cache(self._written)
        self.text(PLAIN)

    def text(self, form: PageForm) -> bytes:
        with self._lock:
            return self._text(form)

    def _written(self, form: PageForm) -> bytes:
        if form.packed:
            return _packed(self._text(PageForm(form.is_open)))
        return self.make().text(is_open=form.is_open)


def _packed(text: bytes) -> bytes:
    return gzip.compress(text, 6, mtime=0)


_NOTHING = _Part(Results(), Families)


class MetricsPage:
    """A page of metrics. A part is written again only after its source has changed."""

    def __init__(self, machine: MachineSource, results: ResultSource, say: Say) -> None:
        self._machine, self._source, self._lock = machine, results, Lock()
        self._of_results = self._of_machine = _NOTHING
        self._results = PeriodicReader("results", self._written, results.period, say)

    def _written(self) -> _Part:
        results = self._source.read()
        if results is not self._of_results.of:
            self._of_results = _Part(results, partial(of_results, results))
        return self._of_results

    def text(self, deadline: float = DEADLINE_SECONDS, form: PageForm = PLAIN) -> bytes:
        """Returns the page. After `deadline` seconds, shows the last values of late readings."""
        written, live, last = self._parts(deadline)
        own = last.text(is_open=form.is_open)
        own += END if form.is_open else b""
        return b"".join([written.text(form), live.text(form), _packed(own) if form.packed else own])

    def families(self, deadline: float = DEADLINE_SECONDS) -> tuple[Families, Families, Families]:
        written, live, last = self._parts(deadline)
        return written.make(), live.make(), last

    def _parts(self, deadline: float) -> tuple[_Part, _Part, Families]:
        readers = self._readers(deadline)
        readings: dict[str, TimedReading[Any]] = {"results": self._results.taken()}
        readings |= {reader.name: reader.taken() for reader in readers}
        written: _Part = readings["results"].value or _NOTHING
        live = self._live([readings[reader.name] for reader in readers])
        return written, live, _own(written.of, readings)

    def _live(self, seen: list[TimedReading[InventoryReading]]) -> _Part:
        versions = [one.version for one in seen]
        with self._lock:
            if self._of_machine.of != versions:
                found = [one.value for one in seen if one.value is not None]
                make = partial(of_machine, self._machine.host, self._machine.simulated, found)
                self._of_machine = _Part(versions, make)
            return self._of_machine

    def _readers(self, deadline: float) -> list[PeriodicReader[InventoryReading]]:
        until = time.monotonic() + deadline
        asked: list[PeriodicReader[InventoryReading]] = []
        self._results.ask()
        while len(found := self._machine.readers()) > len(asked):  # the first may open others
            for reader in found:
                reader.ask()
            for reader in found:
                reader.wait(until, deadline)
            asked = found
        self._results.wait(until, deadline)
        return asked


def _own(results: Results, readings: Mapping[str, TimedReading[Any]]) -> Families:
    families = Families()
    families.add("exporter_info", "Always 1.", 1, {"version": linkgauge.__version__})
    stale = "Whether a source fails, or hangs: what is shown of it is old."
    for name, one in readings.items():
        own = {"source": name}
        families.add("source_age_seconds", "Time since a source was last read.", one.age, own)
        families.add("source_stale", stale, one.stale, own)
    add_ages(families, results, time.time())
    return families


# Serves the page over HTTP, however many clients there are and however slow they are.


PORT = 9410
"""The default port; NVIDIA's dcgm-exporter has 9400."""
LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 256
"""The most connections at the same time. They also use at most a quarter of the files that the
process may open."""
SECONDS = 30.0
"""The most seconds of a request and its answer, including the time before the request arrives."""
_LISTEN = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]*):)?(?P<port>[0-9]{1,5})")
_INDEX = b"""<!doctype html><html lang="en"><title>linkgauge exporter</title>
<h1>linkgauge exporter</h1><p><a href="/metrics">Metrics</a></p></html>
"""


class Address(NamedTuple):
    host: str
    port: int

    @property
    def is_local(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> Address:
    """Reads `127.0.0.1:9410`, `[::1]:9410`, or a port for this machine only. Raises InputError."""
    match = _LISTEN.fullmatch(text.strip())
    if match is None or int(match["port"]) > 65535:
        raise InputError(f"--listen {text!r}: give ADDRESS:PORT, such as 127.0.0.1:{PORT}")
    return Address((match["host"] or "").strip("[]") or LOOPBACK, int(match["port"]))


class _Connections:
    def __init__(self) -> None:
        self._since: dict[socket.socket, float] = {}
        self._lock = Lock()
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        is_limited = files != resource.RLIM_INFINITY
        self._most = min(MOST_CONNECTIONS, max(1, files // 4)) if is_limited else MOST_CONNECTIONS

    def begin(self, one: socket.socket) -> None:
        with self._lock:
            self._since.pop(one, None)
            while len(self._since) >= self._most:
                self._end(next(iter(self._since)))
            self._since[one] = time.monotonic()

    def end(self, one: socket.socket) -> None:
        with self._lock:
            self._since.pop(one, None)

    def end_slow(self) -> None:
        with self._lock:
            before = time.monotonic() - SECONDS
            for one in [one for one, since in self._since.items() if since < before]:
                self._end(one)

    def _end(self, one: socket.socket) -> None:
        """Shuts a connection down. The thread that serves it then closes it."""
        del self._since[one]
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class MetricsServer(ThreadingTCPServer):
    """Serves metrics over HTTP. Raises InputError if it cannot listen at the address."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: Address, page: Callable[[PageForm], bytes]) -> None:
        self.page = page
        self.connections = _Connections()
        try:
            found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
            self.address_family = found[0][0]
            super().__init__((address.host, address.port), _Handler)
        except OSError as error:
            raise InputError(f"cannot listen at {address}: {error.strerror}") from error
        self.at = Address(address.host, self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.begin(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.end(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        self.connections.end_slow()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores errors, because clients may disconnect at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: MetricsServer
    wbufsize = -1  # one packet for head and body

    def version_string(self) -> str:
        return "linkgauge"

    def handle_one_request(self) -> None:
        super().handle_one_request()
        if not self.close_connection:
            self.server.connections.begin(self.connection)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            accepted = (self.headers.get(name, "") for name in ("Accept", "Accept-Encoding"))
            form = form_for(*accepted)
            page = self.server.page(form)
            self._answer(200, form.content_type, page, packed=form.packed)
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
        """Logs nothing, because there may be a hundred requests a second."""
