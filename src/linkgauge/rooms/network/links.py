"""Opens TCP connections between two ranks' interfaces. The port and a secret are in the handle of
the destination's buffer. The destination confirms each connection before data is sent."""

from __future__ import annotations

import hmac
import secrets
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from linkgauge.backends.protocol import Buffer, Copy
from linkgauge.backends.rank import spanned
from linkgauge.machine.processes.wire import BACKLOG, TOKEN_BYTES
from linkgauge.model.errors import BackendError
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.ranks import nic_ends
from linkgauge.model.transfer import Transfer

from .ucx import Mapped

CONNECT_SECONDS = 10.0
"""The seconds in which all connections of a cell must be established."""
SILENT_SECONDS = 15.0
"""The seconds without a byte in either direction after which a connection is dead."""
_HELLO = struct.Struct(f"={TOKEN_BYTES}sQII")
"""The first message of a connection: the secret of the listening rank, the number of the copy's
source, the copy's place and the stream."""
_WORD = b"\x01"
_TIMEVAL = struct.Struct("@ll")

Key = tuple[int, int, int]
"""The key of a stream: the number of the copy's source, the copy's place in the cell, and the
number of the stream."""


class RankAddress(msgspec.Struct, frozen=True):
    """How to reach a rank's buffer: by the rank's listening `port`, the secret `token` and the
    interfaces' `addresses`, by UCX (`mapped`), or by another tool's port (`outside`)."""

    port: int
    token: bytes
    addresses: tuple[tuple[str, ...], ...]
    mapped: Mapped | None = None
    outside: int = 0
    number: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RankAddress).decode


def reached(buffer: Buffer | None) -> RankAddress:
    return _decode(spanned(buffer).handle)


class Way(NamedTuple):
    """A connection's `own` and `far` address, both IPv4 or IPv6. `words` describes both ends."""

    own: str
    far: str
    device: str
    words: str


class Door:
    """A rank's listening socket. A connection that is silent for `silent` seconds is dead."""

    def __init__(self, nics: Sequence[Interface], silent: float = SILENT_SECONDS) -> None:
        self._nics = nics
        self._silent = silent
        self._silence = min(silent, CONNECT_SECONDS)
        self._token = secrets.token_bytes(TOKEN_BYTES)
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._listening = socket.create_server(
            ("", 0), family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
        self.outside = _free_port(family)
        self._own = {address for nic in nics for address in nic.addresses}

    def handle(self, number: int = 0, mapped: Mapped | None = None) -> bytes:
        addresses = tuple(nic.addresses for nic in self._nics)
        port = self._listening.getsockname()[1]
        return _encode(RankAddress(port, self._token, addresses, mapped, self.outside, number))

    def connected(self, copies: Sequence[Copy], rank: int) -> dict[Key, socket.socket]:
        """Connects to other ranks, then accepts their connections, so that no rank waits for
        another. Returns the connections. Raises BackendError if a connection fails."""
        ours, made = _keyed(copies, lambda one: one.source.rank == rank), dict[Key, socket.socket]()
        try:
            for key, copy in ours.items():
                made[key] = self._connect(copy, key)
            self._accept(_keyed(copies, lambda one: one.destination.rank == rank), made)
            for key, copy in ours.items():
                _hear(made[key], copy)
        except BaseException:
            for connection in made.values():
                connection.close()
            raise
        for connection in made.values():
            _set_silence(connection, self._silent)
        return made

    def _connect(self, copy: Copy, key: Key) -> socket.socket:
        there = reached(copy.destination)
        way = self._way(copy, there)
        connection = socket.socket(_family(way.far))
        try:
            connection.settimeout(self._silence)
            if way.far not in self._own:  # else the kernel goes by its loopback, whatever we say
                with suppress(PermissionError):  # then its routes decide
                    connection.setsockopt(
                        socket.SOL_SOCKET, socket.SO_BINDTODEVICE, way.device.encode()
                    )
            connection.bind((way.own, 0))
            connection.connect((way.far, there.port))
            connection.sendall(_HELLO.pack(there.token, *key))
        except OSError as error:
            connection.close()
            raise BackendError("connect", f"{way.words}: {error.strerror or error}") from error
        return connection

    def outside_of(self, copy: Copy) -> tuple[str, int]:
        """Returns the destination's IP address, and the port at which another tool listens there.
        Raises BackendError if the destination has no address."""
        there = reached(copy.destination)
        far = nic_ends(copy.transfer)[1]
        own = there.addresses[far.nic] if far.nic < len(there.addresses) else ()
        others = (
            one for all_of in there.addresses for one in all_of if one not in ("127.0.0.1", "::1")
        )
        found = [*own, *others]
        if copy.transfer.engine.kind == "rdma":  # perftest gets IPv4 if possible
            found.sort(key=lambda address: ":" in address)
        address = next(iter(found), None)
        if address is None:
            raise BackendError("connect", f"rank {far.rank} has no IP address")
        return address, there.outside

    def _way(self, copy: Copy, there: RankAddress) -> Way:
        near, far = nic_ends(copy.transfer)
        nic = self._nics[near.nic]
        words = f"from nic:{near.nic} ({nic.name}) to nic:{far.nic} of rank {far.rank}"
        addresses = there.addresses[far.nic] if far.nic < len(there.addresses) else ()
        for own in nic.addresses:
            for other in addresses:
                if _family(own) == _family(other):
                    return Way(own, other, nic.name, words)
        raise BackendError("connect", f"{words}: they have no addresses of one kind (IPv4, IPv6)")

    def _accept(self, expected: Mapping[Key, Copy], made: dict[Key, socket.socket]) -> None:
        deadline = time.monotonic() + self._silence
        missing = dict(expected)
        while missing:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._listening], [], [], left)[0]:
                raise BackendError("accept", f"{_lacking(missing)} within {self._silence:g} s")
            connection = self._listening.accept()[0]
            connection.settimeout(max(left, 0.1))
            key = self._key_of(connection)
            if key is None or key not in missing:
                connection.close()
                continue
            del missing[key]
            made[key] = connection
            with suppress(OSError):  # one that is gone shows when bytes should come
                connection.sendall(_WORD)

    def _key_of(self, connection: socket.socket) -> Key | None:
        try:
            said = connection.recv(_HELLO.size, socket.MSG_WAITALL)
        except OSError:
            return None
        if len(said) < _HELLO.size:
            return None
        token, number, place, stream = _HELLO.unpack(said)
        return (number, place, stream) if hmac.compare_digest(token, self._token) else None

    def turn_away(self) -> None:
        while self._listening.fileno() >= 0 and select.select([self._listening], [], [], 0)[0]:
            self._listening.accept()[0].close()

    def close(self) -> None:
        self._listening.close()


def _free_port(family: socket.AddressFamily) -> int:
    with socket.socket(family) as asked:
        asked.bind(("", 0))
        return int(asked.getsockname()[1])


def keys_of(place: int, copy: Copy) -> Iterator[Key]:
    number = reached(copy.source).number
    return ((number, place, stream) for stream in range(copy.transfer.engine.count or 1))


def is_by_tcp(copy: Copy) -> bool:
    return copy.transfer.engine.kind == "tcp"


def _keyed(copies: Sequence[Copy], is_own: Callable[[Transfer], bool]) -> dict[Key, Copy]:
    """Returns the TCP copies whose transfers `is_own` accepts, by the keys of their streams."""
    return {
        key: copy
        for place, copy in enumerate(copies)
        if is_own(copy.transfer) and is_by_tcp(copy)
        for key in keys_of(place, copy)
    }


def _lacking(missing: Mapping[Key, Copy]) -> str:
    copy = next(iter(missing.values()))
    near, far = nic_ends(copy.transfer)
    return f"rank {near.rank} does not connect from its nic:{near.nic} to nic:{far.nic}"


def _hear(connection: socket.socket, copy: Copy) -> None:
    try:
        heard = connection.recv(1)
    except OSError as error:
        heard, said = b"", f": {error.strerror or error}"
    else:
        said = ""
    if heard != _WORD:
        end = nic_ends(copy.transfer)[1]
        raise BackendError("connect", f"rank {end.rank} does not answer at its nic:{end.nic}{said}")


def _set_silence(connection: socket.socket, silent: float) -> None:
    connection.settimeout(None)
    seconds = _TIMEVAL.pack(int(silent), int(silent % 1 * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    limit = int(silent * 1e3)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
