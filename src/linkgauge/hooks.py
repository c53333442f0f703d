"""Calls the code of plug-ins, so that a plug-in that fails harms nothing else.

Any exception in a call through `Hook`, even SystemExit, is a failure of the plug-in. What the
plug-in prints goes to stderr. If a call takes long, the plug-in's name is shown; Ctrl-C ends it."""

from __future__ import annotations

import _thread
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple, Self, TextIO, TypeVar, cast

from linkgauge.machine.processes.launch import is_heard
from linkgauge.machine.processes.signals import AGAIN_SECONDS, Signals
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.printable import printable

OURS = "linkgauge"
SLOW_SECONDS = 5.0
"""After this time, a hook that still runs is named."""
_STDOUT, _STDERR = 1, 2
MOST_ITEMS = 10_000
"""The most findings, blocks or rows of one hook."""
_MOST_SAID = 300
_T = TypeVar("_T")
_U = TypeVar("_U")
_LEFT_OUT: dict[str, dict[str, None]] = {}
"""What is left out of each plug-in, by its origin."""
_SAID: set[str] = set()
"""The lines that were reported."""


class PluginFailed(LinkgaugeError):
    """Code of a plug-in failed while it did what the user asked for."""

    def __init__(self, hook: Hook, why: str) -> None:
        super().__init__(f"{hook} failed: {why}")
        self.why = why


class Unfit(Exception):
    """A plug-in returned or named something that linkgauge cannot use."""


class Hook(NamedTuple):
    """Code of an optional feature (room). Calls of a plug-in's code are guarded against errors."""

    what: str
    origin: str

    def __str__(self) -> str:
        return f"{self.what} of {self.origin}"

    @property
    def is_ours(self) -> bool:
        return self.origin == OURS

    def tried(self, call: Callable[[], _T], otherwise: _U) -> _T | _U:
        """Returns what `call` returns; if a plug-in fails, reports it and returns `otherwise`."""
        if self.is_ours:
            return call()
        try:
            with _Guard(self):
                return call()
        except PluginFailed as error:
            leave_out(self, error.why)
            return otherwise

    def items(
        self,
        call: Callable[[], Iterable[_T]],
        kinds: Any,
        check: Callable[[_T], object] = lambda item: None,
    ) -> tuple[_T, ...]:
        """Returns all items that `call` returns. Returns none if a plug-in fails: if `call` or
        `check` raises an exception, an item has a type not in `kinds`, or there are too many."""
        if self.is_ours:
            return tuple(call())

        def taken() -> tuple[_T, ...]:
            returned = call()
            if not isinstance(returned, Iterable):
                raise Unfit(f"it returned {brief(returned)}")
            found = tuple(islice(returned, MOST_ITEMS + 1))
            if found[MOST_ITEMS:]:
                raise Unfit(f"it has more than {MOST_ITEMS:,} items")
            for item in found:
                expect(item, kinds)
                check(item)
            return found

        return self.tried(taken, ())

    @contextmanager
    def asked(self, *, prints: bool = False) -> Iterator[None]:
        """Runs code that the user asked for. If a plug-in raises anything but a LinkgaugeError,
        raises PluginFailed. If `prints` is true, the code may take long and print to stdout."""
        if self.is_ours:
            yield
            return
        with _Guard(self, (LinkgaugeError,), prints=prints):
            yield

    def exit_code(
        self, call: Callable[[], object], passes: tuple[type[Exception], ...] = ()
    ) -> int:
        """Returns the exit code that `call` returns or gives to SystemExit. LinkgaugeErrors and
        exceptions in `passes` go through; a plug-in's other exceptions become PluginFailed."""
        if self.is_ours:
            return cast("int", call())
        with _Guard(self, (LinkgaugeError, *passes), prints=True):
            try:
                code = call()
            except SystemExit as end:
                code = end.code
            if code is None:
                return 0
            if not isinstance(code, int) or not 0 <= code < 256:
                raise Unfit(f"{brief(code)} is no exit code")
            return int(code)


CORE = Hook("code", OURS)
"""The hook for linkgauge's own code."""


def expect(value: Any, kinds: Any) -> Any:
    """Returns the value. Raises Unfit if its type, or the type of a Struct's field, is wrong."""
    if not isinstance(value, kinds):
        every = kinds if isinstance(kinds, tuple) else getattr(kinds, "__args__", (kinds,))
        names = [kind.__name__ for kind in every]
        raise Unfit(f"{brief(value)} is no {names[0] if len(names) < 3 else 'block'}")
    if hasattr(value, "__struct_fields__") and not isinstance(value, type):
        import msgspec

        for field in msgspec.structs.fields(type(value)):
            its = getattr(value, field.name)
            try:
                msgspec.convert(msgspec.to_builtins(its), field.type)
            except msgspec.ValidationError as error:
                raise Unfit(f"its {field.name} is {brief(its)}: {error}") from error
            except TypeError:
                continue  # of a function, which msgspec does not know
    return value


def brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def leave_out(hook: Hook, why: str) -> None:
    """Records why a part of a plug-in failed. Reports name its first part and count the others."""
    _LEFT_OUT.setdefault(hook.origin, {})[f"{hook} is left out: {why}"] = None


def refuse(hook: Hook, why: str) -> None:
    """Records that a part of a plug-in is not used, for a reason other than a failure."""
    line = f"{hook} is left out: {why}"
    _LEFT_OUT.setdefault(line, {})[line] = None


def all_left_out() -> dict[str, list[str]]:
    return {origin: [*lines] for origin, lines in _LEFT_OUT.items()}


def also_left_out(found: Mapping[str, Iterable[str]]) -> None:
    for origin, lines in found.items():
        _LEFT_OUT.setdefault(origin, {}).update(dict.fromkeys(lines))


def unsaid() -> list[str]:
    """Returns the lines about parts that failed or are not used, except those returned before."""
    said: list[str] = []
    for lines in _LEFT_OUT.values():
        if new := [line for line in lines if line not in _SAID]:
            _SAID.update(new)
            said.append(_line(*new))
    return said


def _line(first: str, *more: str) -> str:
    if not more:
        return first
    return f"{first}; so {'is' if len(more) == 1 else 'are'} {len(more)} more of its parts"


def _reason(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001  # the text of an exception is code of the plug-in, too
        text = ""
    said = text if isinstance(error, Unfit) else f"{kind}: {text}" if text else kind
    return printable(said if len(said) <= _MOST_SAID else f"{said[: _MOST_SAID - 1]}…")


class _Guard(Signals):
    def __init__(
        self, hook: Hook, passes: tuple[type[BaseException], ...] = (), *, prints: bool = False
    ) -> None:
        super().__init__()
        self._hook, self._passes, self._prints = hook, passes, prints
        self._first: float | None = None
        self._end: BaseException | None = None

    def __enter__(self) -> Self:
        if not self._prints:
            _ASIDE.begin()
            _SLOW.begin(self, self._hook)
        return super().__enter__()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        if not self._prints:
            _SLOW.end(self)
            _ASIDE.end()
        if self._end is not None and error is not self._end:
            if error is not None or not self._prints:
                raise self._end from None
        elif error is not None and error is not self._end and not isinstance(error, self._passes):
            raise PluginFailed(self._hook, _reason(error)) from None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal, and keeps its exception, because the plug-in may catch it."""
        now = time.monotonic()
        if self._first is None:
            self._first = now
        # The plug-in's code went on after the first signal.
        elif now >= self._first + AGAIN_SECONDS and not self._prints:
            os._exit(128 + number)
        try:
            self._before[number](number, frame)
        except BaseException as end:
            self._end = end
            raise


class _Chatter:
    """A plug-in's stderr. It cannot be closed, and control characters are removed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable(text, "\n\t"))

    def close(self) -> None:
        """Does nothing, because the stream is not the plug-in's."""

    detach = close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def watched(hook: Hook) -> Iterator[None]:
    """Shows a plug-in's name if its code, which another process runs, takes too long."""
    watch = _Guard(hook)
    if not hook.is_ours:
        _SLOW.begin(watch, hook)
    try:
        yield
    finally:
        _SLOW.end(watch)


def watched_from_outside() -> None:
    """Shows no names of slow hooks in this process, because the controlling process does."""
    _SLOW.is_outside = True


class _Aside:
    """Sends what plug-ins and their programs print, in any thread, to stderr instead of stdout."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._running = 0
        self._streams = sys.stdout, sys.stderr
        self._stdout: int | None = None

    def begin(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._streams = sys.stdout, sys.stderr
                sys.stdout = sys.stderr = cast("TextIO", _Chatter(sys.stderr))
                with suppress(OSError):
                    self._stdout = os.dup(_STDOUT)
                    os.dup2(_STDERR, _STDOUT)

    def end(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running:
                return
            with suppress(Exception):
                cast("TextIO", sys.__stdout__).flush()
            sys.stdout, sys.stderr = self._streams
            if self._stdout is not None:
                with suppress(OSError):
                    os.dup2(self._stdout, _STDOUT)
                    os.close(self._stdout)
                self._stdout = None


class _Slow:
    """Shows the names of hooks that take long. One thread watches all hooks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[_Guard, tuple[Hook, float]] = {}
        self._is_watched = False
        self._named: set[Hook] = set()
        self.is_outside = False
        """Whether another process names the hooks of this one."""

    def begin(self, guard: _Guard, hook: Hook) -> None:
        if self.is_outside or hook in self._named:
            return
        with self._lock:
            self._running[guard] = hook, time.monotonic() + SLOW_SECONDS
            starts, self._is_watched = not self._is_watched, True
        if starts:
            _thread.start_new_thread(self._watch, ())

    def end(self, guard: _Guard) -> None:
        with self._lock:
            self._running.pop(guard, None)

    def _watch(self) -> None:
        while (wait := self._next()) is not None:
            time.sleep(wait)

    def _next(self) -> float | None:
        with self._lock:
            now = time.monotonic()
            slow = {guard: hook for guard, (hook, at) in self._running.items() if at <= now}
            self._running |= {guard: (hook, math.inf) for guard, hook in slow.items()}
            waits = [at - now for _, at in self._running.values()]
            self._is_watched = bool(waits)
            self._named.update(slow.values())
        for hook in slow.values() if is_heard(sys.argv) else ():
            line = f"linkgauge: {hook} still runs after {SLOW_SECONDS:g} s; Ctrl-C ends it"
            with suppress(OSError):  # not through a stream: the process may end while it is locked
                os.write(_STDERR, f"{printable(line)}\n".encode())
        return min(*waits, SLOW_SECONDS) if waits else None


_ASIDE, _SLOW = _Aside(), _Slow()
