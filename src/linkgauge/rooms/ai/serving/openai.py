"""Sends requests to an inference server, by OpenAI's API or another client, and times answers."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from itertools import accumulate
from random import Random
from statistics import median
from typing import Annotated, Any, Protocol
from urllib.parse import urlsplit

import msgspec

from linkgauge.backends.protocol import Gated, SamplingPolicy, Timing
from linkgauge.model.errors import BackendError, InputError
from linkgauge.model.operations.workload import Demands, Rates, Server, Stage, WorkDone, Workload
from linkgauge.model.stats.summary import summarize

REQUESTS_EACH, LEAST_REQUESTS = 4, 8
"""The number of requests in a sample for each concurrent request, and the fewest requests in
all."""
OPEN_SECONDS, MOST_REQUESTS = 2.0, 4096
"""The seconds in which all requests of an open loop's sample arrive, and the most requests."""
CLOSED_SECONDS = 0.5
"""The least seconds of a sample of a closed loop."""
MOST_THREADS = 256


class Answer(msgspec.Struct, frozen=True):
    """A server's answer. `ended` is when it was complete. `came` are the times when the tokens of a
    stream arrived. Times are seconds of the monotonic clock."""

    ended: float
    came: tuple[float, ...] = ()
    tokens: int = 0


class Client(Protocol):
    def request(self, number: int) -> Answer:
        """Sends request `number` and reads the answer. Is thread-safe. Raises BackendError."""
        ...

    def close(self) -> None: ...


class SentRequest(msgspec.Struct, frozen=True):
    due: float
    answer: Answer

    @property
    def latency(self) -> float:
        return self.answer.ended - self.due


def arrivals(rate: float, count: int, seed: int) -> list[float]:
    """Returns `count` random times of a Poisson process, in seconds. The first time is 0."""
    drawn = Random(seed)  # noqa: S311  # no secret
    gaps = (drawn.expovariate(rate) for _ in range(count - 1))
    return list(accumulate(gaps, initial=0.0))


class ServingGroup(Gated):
    """Sends a server many requests in each sample. A sample ends when all are answered."""

    def __init__(self, asked: Workload, client: Client) -> None:
        self._asked, self._client = asked, client
        self._rate = asked.server.rate if asked.server else None
        wanted = REQUESTS_EACH * asked.batch
        if self._rate is not None:
            wanted = min(MOST_REQUESTS, round(OPEN_SECONDS * self._rate))
        self._count = max(LEAST_REQUESTS, wanted)
        threads = asked.batch if self._rate is None else min(self._count, MOST_THREADS)
        self._pool = ThreadPoolExecutor(threads)
        self._samples: list[tuple[float, list[SentRequest]]] = []
        lasting = CLOSED_SECONDS if self._rate is None else 0.0
        self.policy = SamplingPolicy(lasting, loops=1, steps=self._count)

    def wait(self) -> Timing:
        loops, batches = self.pass_gate()
        begin, sent = time.monotonic(), list[SentRequest]()
        for _ in range(loops * batches):
            sent += self._loop()
        seconds = time.monotonic() - begin
        self._samples.append((seconds, sent))
        return Timing((seconds,), seconds, (None,), ((0.0, seconds),))

    def _loop(self) -> Sequence[SentRequest]:
        if self._rate is None:
            return list(self._pool.map(self._due, range(self._count)))
        begin = time.monotonic()
        seed = self._asked.seed + len(self._samples)
        waiting = []
        for number, moment in enumerate(arrivals(self._rate, self._count, seed)):
            due = begin + moment
            time.sleep(max(0.0, due - time.monotonic()))
            waiting.append(self._pool.submit(self._due, number, due))
        return [one.result() for one in waiting]

    def _due(self, number: int, due: float | None = None) -> SentRequest:
        due = time.monotonic() if due is None else due
        return SentRequest(due, self._client.request(number))

    def done(self) -> WorkDone:
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


def _stages(sent: Sequence[SentRequest]) -> list[Stage]:
    came = [one.answer.came for one in sent]
    first = tuple(own[0] - one.due for one, own in zip(sent, came, strict=True) if own)
    between = tuple(after - before for own in came for before, after in zip(own, own[1:]))  # noqa: B905, RUF007
    found = (
        ("request", tuple(one.latency for one in sent)),
        ("first token", first),
        ("between tokens", between),
    )
    return [Stage(name, own, summarize(own, "lower")) for name, own in found if own]


# A client of an OpenAI-compatible endpoint: vLLM, `transformers serve` and the like.


_TIMEOUT = 120.0
_COMPLETIONS, _CHAT = "/v1/completions", "/v1/chat/completions"
_ABSENT = (404, 405, 501)
_WORDS = ("red", "two", "sun", "cat", "run", "box", "sky", "tea")
_KEY = "OPENAI_API_KEY"
MOST_BYTES, MOST_BYTES_OF_TOKEN = 4 << 20, 4 << 10
"""The most bytes of an answer, and the additional bytes for each requested token. The event of a
token has some hundred bytes."""
_MOST_SAID = 300


class _Model(msgspec.Struct, frozen=True):
    id: str


class _Models(msgspec.Struct, frozen=True):
    data: tuple[_Model, ...] | None = ()


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    text: str | None = None
    delta: _Delta | None = None

    @property
    def has_text(self) -> bool:
        return bool(self.text or (self.delta and self.delta.content))


class _Usage(msgspec.Struct, frozen=True):
    completion_tokens: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] | None = None


class _StreamEvent(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = ()
    usage: _Usage | None = None


class OpenAiClient:
    """A client for OpenAI's HTTP API, with a connection per thread. Times the tokens of streams."""

    def __init__(self, server: Server, asked: Workload) -> None:
        self._server, self._asked = server, asked
        self._parts = urlsplit(server.url)
        check_address(server.url)
        self._own = threading.local()
        self._opened: list[HTTPConnection] = []
        self._model = server.model or self._first_model()
        self._path = _COMPLETIONS
        if self._status(_COMPLETIONS) in _ABSENT:
            self._path = _CHAT

    def request(self, number: int) -> Answer:
        came: list[float] = []
        counted, tokens = 0, self._asked.tokens
        with self._answer("POST", self._path, self._body(number, tokens)) as response:
            self._must_be_ok(response)
            for line in response.lines(MOST_BYTES + tokens * MOST_BYTES_OF_TOKEN):
                event = _event(line)
                if event.usage is not None:
                    counted = max(counted, event.usage.completion_tokens or 0)
                if any(choice.has_text for choice in event.choices or ()):
                    came.append(time.monotonic())
        return Answer(time.monotonic(), tuple(came), counted or len(came))

    def _body(self, number: int, tokens: int) -> dict[str, Any]:
        drawn = Random(self._asked.seed * 1_000_003 + number)  # noqa: S311  # no secret
        prompt = " ".join(drawn.choice(_WORDS) for _ in range(self._asked.prompt))
        body = {"model": self._model, "max_tokens": tokens, "temperature": 0, "stream": True}
        if self._path == _CHAT:
            return body | {"messages": [{"role": "user", "content": prompt}]}
        return body | {"prompt": prompt}

    def _status(self, path: str) -> int:
        self._path = path
        with self._answer("POST", path, self._body(0, 1)) as response:
            response.read()
            return response.status

    def _first_model(self) -> str:
        with self._answer("GET", "/v1/models") as response:
            self._must_be_ok(response)
            known = msgspec.json.decode(response.read(), type=_Models).data
            if not known:
                raise _Wrong("it names no model: give --server-model")
            return known[0].id

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Iterator[_BoundedAnswer]:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(_KEY):
            headers["Authorization"] = f"Bearer {key}"
        sent = None if body is None else json.dumps(body).encode()
        connection = self._connection()
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, sent, headers)
            with connection.getresponse() as response:
                yield _BoundedAnswer(response)
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            connection.close()  # the next request opens it anew
            understood = isinstance(error, OSError | HTTPException | _Wrong)
            why = str(error)[:_MOST_SAID] or type(error).__name__
            why = why if understood else f"its answer is not understood: {why}"
            raise BackendError(f"{method} {self._server.url}{path}", why) from error

    def _connection(self) -> HTTPConnection:
        found: HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            found = kind(self._parts.hostname or "", self._parts.port, timeout=_TIMEOUT)
            self._own.connection = found
            self._opened.append(found)
        return found

    def _must_be_ok(self, response: _BoundedAnswer) -> None:
        if response.status != 200:  # OK
            said = response.read()[:_MOST_SAID].decode(errors="replace")
            raise _Wrong(f"HTTP {response.status}: {said}")

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


class _Wrong(ValueError):
    """Raised for an answer that cannot be used. The message is the reason."""


class _BoundedAnswer:
    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self.status = response.status

    def read(self) -> bytes:
        content = self._response.read(MOST_BYTES + 1)
        self._check(len(content), MOST_BYTES)
        self._end()
        return content

    def lines(self, most: int) -> Iterator[bytes]:
        taken = 0
        while line := self._response.readline(most + 1 - taken):
            taken += len(line)
            self._check(taken, most)
            yield line
        self._end()

    def _end(self) -> None:
        """Ends reading, to free the connection. Raises _Wrong if the answer is not complete."""
        self._response.read(1)
        if self._response.length:
            raise _Wrong("its answer ends too soon")

    def _check(self, taken: int, most: int) -> None:
        if taken > most:
            raise _Wrong(f"its answer has more than {most} bytes")


def _event(line: bytes) -> _StreamEvent:
    name, _, text = line.strip().partition(b":")
    if name != b"data" or text.strip() == b"[DONE]":
        return _StreamEvent()
    return msgspec.json.decode(text, type=_StreamEvent)


def check_address(url: str) -> None:
    if not _is_address(url):
        raise InputError(f"--url {url}: give http://HOST:PORT")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        return False
