"""Connects ranks by sockets. Ranks on one machine use a named socket, others use TCP."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import struct
import time
from collections.abc import Callable

from linkgauge.model.errors import InputError, LinkgaugeError

from .launch import Launch

BACKLOG = 4096
AGAIN_SECONDS = 0.05
"""Seconds before the next attempt to connect."""
TOKEN_BYTES = 16
_KEEP_ALIVE = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 6}
"""Options of TCP keep-alive: seconds of silence before a probe, seconds between probes, and the
number of probes."""
LONGEST_JOB = 64
"""The longest job name in bytes that is used as it is. Longer names are hashed, because a socket's
name has at most 107 bytes."""
_CREDENTIALS = struct.Struct("3i")
"""Linux' struct ucred: process, user and group."""


class NotReached(LinkgaugeError):
    """Rank 0 could not be reached."""


def name_of(launch: Launch) -> str:
    """Returns rank 0's socket name. It is abstract, and so vanishes with its process."""
    job = os.fsencode(launch.job)
    short = launch.job if len(job) <= LONGEST_JOB else hashlib.sha256(job).hexdigest()
    return f"\0linkgauge/ranks/{os.getuid()}/{short}/0"


def listen_here(launch: Launch) -> socket.socket:
    """Listens for ranks on this machine. Raises InputError if the socket's name is taken."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(name_of(launch))
    except OSError as error:
        listening.close()
        said = error.strerror or error
        raise InputError(f"launch {launch.job} has a rank 0 on this machine: {said}") from error
    listening.listen(BACKLOG)
    return listening


def connect_here(
    launch: Launch, seconds: float, look: Callable[[], None] = lambda: None
) -> socket.socket:
    """Connects to rank 0. Calls `look` between attempts. Raises NotReached after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        connecting = socket.socket(socket.AF_UNIX)
        try:
            connecting.connect(name_of(launch))
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
    """Returns a listening socket, with host, port and a token that ranks must show."""
    listening = socket.create_server(("", 0), backlog=BACKLOG)
    token = secrets.token_bytes(TOKEN_BYTES)
    return listening, (socket.gethostname(), listening.getsockname()[1], token)


def listen_at(first: str) -> socket.socket:
    """Listens at the HOST:PORT that all ranks were given. Raises InputError if this fails."""
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
    """Connects to rank 0 at HOST:PORT as `connect_here` does, even if rank 0 starts later."""
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
    """Connects to rank 0. Raises NotReached if that fails or takes more than `seconds`."""
    try:
        connected = socket.create_connection((host, port), seconds)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise NotReached(f"cannot be reached at {host}:{port}: {said}") from error
    connected.settimeout(None)
    return _prompt(connected)


def accepted(listening: socket.socket) -> socket.socket:
    return _prompt(listening.accept()[0])


def _prompt(end: socket.socket) -> socket.socket:
    """Makes TCP send short messages at once, and detect a lost connection while idle."""
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
