"""Connects ranks by sockets: on one machine by a name that only this launch has, otherwise over
TCP."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from linkgauge.model.errors import InputError, LinkgaugeError

from .launch import Launch

BACKLOG = 4096
AGAIN_SECONDS = 0.05
"""Delay before the next attempt to connect."""
TOKEN_BYTES = 16
_KEEP_ALIVE = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 6}
"""TCP keep-alive: the seconds of silence before the kernel probes the other end, the seconds
between probes, and the number of probes."""
LONGEST_JOB = 64
"""A launch's name with more bytes is hashed, because names of sockets have at most 107 bytes."""
_CREDENTIALS = struct.Struct("3i")
"""Linux' ucred: process, user and group."""


class NotReached(LinkgaugeError):
    """Rank 0 could not be reached."""


def name_of(launch: Launch, what: str) -> str:
    """Returns a socket's name in the abstract namespace. The name vanishes with the process that
    uses it."""
    job = os.fsencode(launch.job)
    short = launch.job if len(job) <= LONGEST_JOB else hashlib.sha256(job).hexdigest()
    return f"\0linkgauge/ranks/{os.getuid()}/{short}/{what}"


def listen_here(launch: Launch) -> socket.socket:
    """Opens the socket at which rank 0 listens for ranks on its machine. Raises InputError if
    another process has the name."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(name_of(launch, "0"))
    except OSError as error:
        listening.close()
        said = error.strerror or error
        raise InputError(f"launch {launch.job} has a rank 0 on this machine: {said}") from error
    listening.listen(BACKLOG)
    return listening


def connect_here(
    launch: Launch, seconds: float, look: Callable[[], None] = lambda: None
) -> socket.socket:
    """Connects to rank 0 on this machine. Calls `look` between attempts; an error of `look` ends
    the attempts. Raises NotReached if rank 0 is not there in time."""
    deadline = time.monotonic() + seconds
    while True:
        connecting = socket.socket(socket.AF_UNIX)
        try:
            connecting.connect(name_of(launch, "0"))
        except OSError:
            connecting.close()
        else:
            if is_ours(connecting):
                return connecting
            connecting.close()  # another user took the name
        if time.monotonic() > deadline:
            raise NotReached(f"did not appear within {seconds:g} s")
        look()
        time.sleep(AGAIN_SECONDS)


def listen_anywhere() -> tuple[socket.socket, tuple[str, int, bytes]]:
    """Opens the socket at which rank 0 listens for ranks on other machines. Returns the socket and
    its address: host, port and token. Anybody may connect, so ranks of this launch must show the
    token."""
    listening = socket.create_server(("", 0), backlog=BACKLOG)
    token = secrets.token_bytes(TOKEN_BYTES)
    return listening, (socket.gethostname(), listening.getsockname()[1], token)


def listen_at(first: str) -> socket.socket:
    """Opens the socket at which rank 0 listens: the HOST:PORT that all ranks were given. Raises
    InputError if rank 0 cannot listen there."""
    host, port = _host_and_port(first)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputError(f"rank 0 cannot listen at {first}: {said}") from error


def connect_at(
    first: str, seconds: float, look: Callable[[], None] = lambda: None
) -> socket.socket:
    """Connects to rank 0 at its address; rank 0 may start later than this process. Calls `look`
    between attempts; an error of `look` ends the attempts. Raises NotReached if rank 0 is not there
    in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return connect_there(*_host_and_port(first), max(1.0, deadline - time.monotonic()))
        except NotReached:
            if time.monotonic() > deadline:
                raise
        look()
        time.sleep(AGAIN_SECONDS)


def _host_and_port(first: str) -> tuple[str, int]:
    host, _, port = first.rpartition(":")
    return host.strip("[]"), int(port)


def connect_there(host: str, port: int, seconds: float) -> socket.socket:
    """Connects to an address. Raises NotReached if the connection fails, or takes more than
    `seconds`."""
    try:
        connected = socket.create_connection((host, port), seconds)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise NotReached(f"cannot be reached at {host}:{port}: {said}") from error
    connected.settimeout(None)
    return _prompt(connected)


def accepted(listening: socket.socket) -> socket.socket:
    """Accepts the next connection."""
    return _prompt(listening.accept()[0])


def _prompt(end: socket.socket) -> socket.socket:
    """Sets options of a socket. Short messages leave at once instead of waiting for an
    acknowledgement. A lost connection is noticed even while nothing is sent."""
    if end.family != socket.AF_UNIX:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE.items():
            end.setsockopt(socket.IPPROTO_TCP, option, value)
    return end


def is_ours(accepted: socket.socket) -> bool:
    """Whether the other end of a socket on this machine belongs to this user."""
    credentials = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(credentials)[1] == os.getuid())


def is_first(launch: Launch) -> socket.socket | None:
    """Returns a lock to the first rank of this machine that asks, and None to later ranks. The rank
    with the lock records the loss of rank 0."""
    mark = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        mark.bind(name_of(launch, "controller-lost"))
        return mark
    mark.close()
    return None
