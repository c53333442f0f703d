"""A client of an OpenAI-compatible endpoint: vLLM, `transformers serve` and the like."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from random import Random
from typing import Any
from urllib.parse import urlsplit

from linkgauge.model.errors import BackendError, InputError
from linkgauge.model.workload import Server, Workload

from .load import Answer

_TIMEOUT = 120.0
_COMPLETIONS, _CHAT = "/v1/completions", "/v1/chat/completions"
_ABSENT = (404, 405, 501)
_WORDS = ("red", "two", "sun", "cat", "run", "box", "sky", "tea")
_KEY = "OPENAI_API_KEY"


class OpenAiClient:
    """A connection for each thread. Answers are streamed, so that each token's moment is known; the
    key of the environment variable OPENAI_API_KEY is sent along if there is one."""

    def __init__(self, server: Server, asked: Workload) -> None:
        self._server, self._asked = server, asked
        self._parts = urlsplit(server.url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise InputError(f"--url {server.url}: give http://HOST:PORT")
        self._own = threading.local()
        self._opened: list[HTTPConnection] = []
        self._model = server.model or self._first_model()
        self._path = _COMPLETIONS
        if self._status(_COMPLETIONS) in _ABSENT:
            self._path = _CHAT

    def request(self, number: int) -> Answer:
        response = self._post(self._path, self._body(number, self._asked.tokens))
        if response.status != 200:  # OK
            raise self._problem(self._path, response)
        came: list[float] = []
        counted = 0
        for event in _events(response):
            told = event.get("usage") or {}
            counted = max(counted, int(told.get("completion_tokens") or 0))
            if any(map(_text, event.get("choices") or ())):
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
        response = self._post(path, self._body(0, 1))
        response.read()
        return response.status

    def _first_model(self) -> str:
        response = self._send("GET", "/v1/models", None)
        if response.status != 200:
            raise self._problem("/v1/models", response)
        known = json.loads(response.read()).get("data") or []
        if not known:
            raise BackendError("GET /v1/models", "the server names no model: give --server-model")
        return str(known[0]["id"])

    def _post(self, path: str, body: Mapping[str, Any]) -> HTTPResponse:
        return self._send("POST", path, json.dumps(body).encode())

    def _send(self, method: str, path: str, body: bytes | None) -> HTTPResponse:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(_KEY):
            headers["Authorization"] = f"Bearer {key}"
        try:
            connection = self._connection()
            connection.request(method, self._parts.path.rstrip("/") + path, body, headers)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            self._own.__dict__.clear()
            raise BackendError(f"{method} {self._server.url}{path}", str(error)) from error

    def _connection(self) -> HTTPConnection:
        """This thread's."""
        found: HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            found = kind(self._parts.hostname or "", self._parts.port, timeout=_TIMEOUT)
            self._own.connection = found
            self._opened.append(found)
        return found

    def _problem(self, path: str, response: HTTPResponse) -> BackendError:
        said = response.read(300).decode(errors="replace")
        return BackendError(f"{self._server.url}{path}", f"HTTP {response.status}: {said}")

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


def _events(response: HTTPResponse) -> Iterator[dict[str, Any]]:
    """What a stream of events tells, up to its end."""
    while line := response.readline():
        name, _, text = line.decode(errors="replace").strip().partition(":")
        if name == "data" and text.strip() != "[DONE]":
            yield json.loads(text)
    response.read()  # to its very end, or the connection takes no other request


def _text(choice: Mapping[str, Any]) -> str:
    """The text of a choice, of either kind of endpoint."""
    return str(choice.get("text") or (choice.get("delta") or {}).get("content") or "")
