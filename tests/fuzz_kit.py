"""Mutations of files, and tries: each is carried out in a fork of this process, so that its
traceback, its hang and its memory are its own. `python tests/fuzz_kit.py FIRST COUNT KIND...`
prints a line of JSON for each try; tests/fuzz_inputs.py has the kinds."""

import json
import os
import random
import re
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

LONGEST = 20.0
"""Seconds that a try may take."""
LOOK = 0.5
MOST_MEMORY = 300 << 20
"""Bytes that a try, or a process that it started, may have at once."""
CODES = {0, 1, 2, 3, 4, 130}
MOST_SAID = 3000
DEEP = 20_000
NUMBERS = (
    b"0", b"-1", b"1", b"2", b"0.5", b"-0.5", b"1e-320", b"1e308", b"-1e308", b"NaN", b"-Infinity",
    b"9" * 30, b"9" * 5000, b"4294967296", b"9223372036854775807", b"18446744073709551615",
)  # fmt: skip
VALUES = (
    b"null", b"true", b'""', b"[]", b"{}", b"[[]]", *NUMBERS,
    b'"' + b"x" * 100_000 + b'"', b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    b'"\\u0000"', b'"\\ud800"', b'"\\u202e\\u001b[31m"', '"ü≠漢"'.encode(), b'"\xff\xfe"',
    b"\n", b"''",
)  # fmt: skip
_VALUE = re.compile(
    rb'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:null|true|false)\b'
)
"""A value as JSON, YAML and XML write it: in quotes, a number, or a constant."""
_WORD = re.compile(rb"[A-Za-z_]\w*")


def mutated(data: bytes, draw: random.Random) -> bytes:
    """The data with one to three changes."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        data = draw.choice(CHANGES)(data, draw)
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    """Some bits of some bytes."""
    changed = bytearray(data)
    for _ in range(min(len(data), draw.choice((1, 4, 64)))):
        changed[draw.randrange(len(data))] ^= draw.randrange(1, 256)
    return bytes(changed)


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randint(0, len(data))]


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.randint(0, len(data))
    return data[:at] + draw.choice((*VALUES, draw.randbytes(16))) + data[at:]


def _of_lines(change: Callable[[list[bytes], int, random.Random], None]) -> Callable:
    def changed(data: bytes, draw: random.Random) -> bytes:
        lines = data.splitlines(keepends=True)
        if lines:
            change(lines, draw.randrange(len(lines)), draw)
        return b"".join(lines)

    return changed


def _double(lines: list[bytes], at: int, draw: random.Random) -> None:
    lines.insert(draw.randint(0, len(lines)), lines[at])


def _delete(lines: list[bytes], at: int, _: random.Random) -> None:
    del lines[at]


def _swap_lines(lines: list[bytes], at: int, draw: random.Random) -> None:
    other = draw.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _of_values(pattern: re.Pattern[bytes], make: Callable) -> Callable:
    """Puts what `make` returns, given all values, in the place of one of them."""

    def changed(data: bytes, draw: random.Random) -> bytes:
        begin = draw.randint(0, len(data))
        near = data[begin : begin + 100_000]  # a value near some place: files may have millions
        values = list(pattern.finditer(near)) or list(pattern.finditer(data[:100_000]))
        base = begin if pattern.search(near) else 0
        if not values:
            return data
        one = draw.choice(values[:50])
        new = make(values, draw)
        return data[: base + one.start()] + new + data[base + one.end() :]

    return changed


def _strange(_: list, draw: random.Random) -> bytes:
    return draw.choice(VALUES)


def _number(_: list, draw: random.Random) -> bytes:
    return draw.choice(NUMBERS)


def _other(values: list, draw: random.Random) -> bytes:
    return draw.choice(values)[0]


def _another_value(data: bytes, draw: random.Random) -> bytes:
    """A value inside a document of JSON, or inside a line of it, for another."""
    lines = data.splitlines(keepends=True) or [b""]
    at = draw.randrange(len(lines))
    try:
        document = json.loads(lines[at])
    except (ValueError, RecursionError):
        return _swap_values(data, draw)
    holder, key = _somewhere(document, draw)
    if holder is None:
        return data
    change = draw.choice(("value", "delete", "double", "empty"))
    if change == "delete":
        del holder[key]
    elif change == "double" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif change == "empty":
        holder[key] = type(holder[key])()
    else:
        mark = "\0here"
        holder[key] = mark
        written = json.dumps(document, separators=(",", ":")).encode()
        lines[at] = written.replace(json.dumps(mark).encode(), draw.choice(VALUES)) + b"\n"
        return b"".join(lines)
    lines[at] = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    return b"".join(lines)


def _somewhere(document, draw: random.Random):
    """An entry: its list or mapping, and its index or name. As likely near the top as deep."""
    holder, key = None, None
    while isinstance(document, list | dict) and document:
        holder = document
        key = draw.choice(list(document) if isinstance(document, dict) else range(len(document)))
        document = document[key]
        if draw.random() < 0.2:
            break
    return holder, key


_swap_values = _of_values(_VALUE, _other)
CHANGES = (
    _flip, _cut, _insert, _of_lines(_double), _of_lines(_delete), _of_lines(_swap_lines),
    _of_values(_VALUE, _strange), _of_values(_VALUE, _number), _of_values(_WORD, _other),
    _swap_values, _another_value, _another_value, _another_value,
)  # fmt: skip


@dataclass
class Try:
    """How a try ended. `code` is None where it was not by an exit code; `said` is the last it
    wrote."""

    kind: str
    seed: int
    code: int | None
    seconds: float
    memory: int
    said: str

    @property
    def fault(self) -> str | None:
        """What is wrong with it."""
        if self.code not in CODES:
            return f"exit code {self.code}: {self.said}"
        if self.memory > MOST_MEMORY:
            return f"it took {self.memory >> 20} MiB"
        if "Traceback" in self.said or "worker broke" in " ".join(self.said.split()):
            return self.said
        if self.code in (2, 3) and not self.said:
            return f"exit code {self.code} without a word"
        return None


def tried(kind: str, seed: int, carry_out: Callable[[], tuple[int, str]]) -> Try:
    """Carries it out in a fork, which is ended where it takes too long."""
    reading, writing = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.write(writing, json.dumps(_carried_out(carry_out)).encode())
        os._exit(0)
    os.close(writing)
    # In short waits: a machine that stood still in between counts as one of them.
    if not any(select.select([reading], [], [], LOOK)[0] for _ in range(int(LONGEST / LOOK))):
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        written = pipe.read()
    code, said = json.loads(written) if written else (None, f"hung, or ended by status {status}")
    return Try(kind, seed, code, time.monotonic() - began, used.ru_maxrss << 10, said)


def _carried_out(carry_out: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """With what the processes that it started wrote to stderr."""
    with TemporaryFile() as written:
        for descriptor in (1, 2):
            os.dup2(written.fileno(), descriptor)
        try:
            code, said = carry_out()
        except BaseException:  # noqa: BLE001  # whatever it is, it is a fault
            code, said = 70, traceback.format_exc()
        written.seek(0)
        return code, written.read(MOST_SAID).decode(errors="replace") + said[-MOST_SAID:]


def table(tries: list[Try]) -> str:
    """A line for each kind: tries, exit codes, the longest, the most memory, faults."""
    lines = []
    for kind in dict.fromkeys(one.kind for one in tries):
        own = [one for one in tries if one.kind == kind]
        codes = dict(sorted(Counter(str(one.code) for one in own).items()))
        longest, most = max(o.seconds for o in own), max(o.memory for o in own) >> 20
        faults = sum(one.fault is not None for one in own)
        lines.append(f"{kind} {len(own)} {codes} {longest:.1f} s {most} MiB {faults} faults")
    return "\n".join(lines)


def main(first: str, count: str, *kinds: str) -> None:
    from fuzz_inputs import KINDS

    for kind in kinds:
        with TemporaryDirectory(prefix="fuzz") as folder:
            prepared = KINDS[kind](Path(folder))
            for seed in range(int(first), int(first) + int(count)):
                draw = random.Random(f"{kind} {seed}")
                found = tried(kind, seed, prepared(draw, seed))
                print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
