"""When requests are sent, and what is known of them once they are answered."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Protocol

import msgspec

from linkgauge.backends.protocol import Gated, Pace, Timing
from linkgauge.model.stats.summary import summarize
from linkgauge.model.workload import Demands, Rates, Stage, WorkDone, Workload

REQUESTS_EACH, LEAST_REQUESTS = 4, 8
"""Requests of a sample for each that is under way at once, and at least."""
OPEN_SECONDS, MOST_REQUESTS = 2.0, 4096
"""How long requests of an open loop come in a sample, and how many at most."""
CLOSED_SECONDS = 0.5
"""A sample of a closed loop lasts at least as long."""
MOST_THREADS = 256


class Answer(msgspec.Struct, frozen=True):
    """When an answer's tokens came, in seconds of the monotonic clock, and when it ended. An answer
    that is not streamed has no tokens."""

    ended: float
    came: tuple[float, ...] = ()
    tokens: int = 0


class Client(Protocol):
    def request(self, number: int) -> Answer:
        """Sends a request and reads all of its answer. Called from several threads at once. Raises
        BackendError for what is no answer."""
        ...

    def close(self) -> None: ...


class Sent(msgspec.Struct, frozen=True):
    """A request: when it was due, and its answer."""

    due: float
    answer: Answer

    @property
    def latency(self) -> float:
        """From the moment at which it was due, also where it had to wait for a thread."""
        return self.answer.ended - self.due


def arrivals(rate: float, count: int, seed: int) -> list[float]:
    """Moments of a Poisson process, in seconds from 0."""
    drawn, at, moments = random.Random(seed), 0.0, []  # noqa: S311  # no secret
    for _ in range(count):
        moments.append(at)
        at += drawn.expovariate(rate)
    return moments


class ServingGroup(Gated):
    """A sample is a number of requests, from when the first is due until all are answered."""

    def __init__(self, asked: Workload, client: Client) -> None:
        self._asked, self._client = asked, client
        self._rate = asked.server.rate if asked.server else None
        wanted = REQUESTS_EACH * asked.batch
        if self._rate is not None:
            wanted = min(MOST_REQUESTS, round(OPEN_SECONDS * self._rate))
        self._count = max(LEAST_REQUESTS, wanted)
        threads = asked.batch if self._rate is None else min(self._count, MOST_THREADS)
        self._pool = ThreadPoolExecutor(threads)
        self._samples: list[tuple[float, list[Sent]]] = []
        lasting = CLOSED_SECONDS if self._rate is None else 0.0
        self.pace = Pace(lasting, loops=1, steps=self._count)

    def wait(self) -> Timing:
        loops, laps = self.pass_gate()
        begin, sent = time.monotonic(), list[Sent]()
        for _ in range(loops * laps):
            sent += self._loop()
        seconds = time.monotonic() - begin
        self._samples.append((seconds, sent))
        return Timing((seconds,), seconds, (None,), ((0.0, seconds),))

    def _loop(self) -> Sequence[Sent]:
        if self._rate is None:
            return list(self._pool.map(self._now, range(self._count)))
        begin = time.monotonic()
        seed = self._asked.seed + len(self._samples)
        waiting = []
        for number, moment in enumerate(arrivals(self._rate, self._count, seed)):
            due = begin + moment
            time.sleep(max(0.0, due - time.monotonic()))
            waiting.append(self._pool.submit(self._due, number, due))
        return [one.result() for one in waiting]

    def _now(self, number: int) -> Sent:
        return self._due(number, time.monotonic())

    def _due(self, number: int, due: float) -> Sent:
        return Sent(due, self._client.request(number))

    def done(self) -> WorkDone:
        """Of all samples but those that warmed up."""
        counted = self._samples[2:] or self._samples
        sent = [one for _, some in counted for one in some]
        tokens = sum(one.answer.tokens for one in sent)
        seconds = sum(took for took, _ in counted)
        kind = "open" if self._rate is not None else "closed"
        return WorkDone(
            median(took for took, _ in counted),
            0,
            Demands(),
            Rates(),
            (f"{kind} loop, {len(sent)} requests",),
            tuple(_stages(sent)),
            tokens_rate=tokens / seconds if tokens else None,
        )

    def close(self) -> None:
        super().close()
        self._pool.shutdown(cancel_futures=True)
        self._client.close()


def _stages(sent: Sequence[Sent]) -> list[Stage]:
    came = [one.answer.came for one in sent]
    first = tuple(own[0] - one.due for one, own in zip(sent, came, strict=True) if own)
    between = tuple(after - before for own in came for before, after in zip(own, own[1:]))  # noqa: B905, RUF007
    found = (
        ("request", tuple(one.latency for one in sent)),
        ("first token", first),
        ("between tokens", between),
    )
    return [Stage(name, own, summarize(own, "lower")) for name, own in found if own]
