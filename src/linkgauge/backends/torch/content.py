"""How patterns are made in device memory. A mask clears the sign bits that torch's `>>` repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from linkgauge.backends.protocol import INDEX_FACTOR, SEED_FACTOR, Pattern
from linkgauge.model.errors import Unsupported
from linkgauge.model.transfer import CHUNK

WORD = 8
_PIECE = 1 << 24
"""The number of words that are processed at once. An intermediate result has an eighth of a GiB."""
_SHIFT, _KEPT = 29, (1 << 35) - 1
_MANTISSA_SHIFT, _MANTISSA_KEPT, _MANTISSA = 16, (1 << 48) - 1, 2.0**-48


def fill(torch: Any, memory: Any, pattern: Pattern, seed: int, inverted: bool) -> None:
    for _, part, words in _pieces(torch, memory, pattern, seed):
        made = ~words if inverted else words
        part.copy_(made.view(torch.uint8)[: part.numel()])


def first_mismatch(torch: Any, memory: Any, pattern: Pattern, seed: int) -> int | None:
    for begin, part, words in _pieces(torch, memory, pattern, seed):
        wrong = part != words.view(torch.uint8)[: part.numel()]
        if bool(wrong.any()):
            return begin + int(wrong.to(torch.uint8).argmax())
    return None


def checksum(torch: Any, memory: Any) -> int:
    whole = memory.numel() // WORD
    words = memory[: whole * WORD].view(torch.int64)
    found = 0
    for begin in range(0, whole, _PIECE):
        part = words[begin : begin + _PIECE]
        while part.numel() > 1:
            half = part.numel() // 2
            odd = part[2 * half :]
            part = part[:half] ^ part[half : 2 * half]
            if odd.numel():
                part[0] ^= odd[0]
        found ^= int(part[0])
    tail = bytes(memory[whole * WORD :].tolist())
    return found % (1 << 64) ^ int.from_bytes(tail, "little")


def _pieces(torch: Any, memory: Any, pattern: Pattern, seed: int) -> Iterator[tuple[int, Any, Any]]:
    size = memory.numel()
    words = -(-size // WORD)
    for first in range(0, words, _PIECE):
        last = min(first + _PIECE, words)
        part = memory[first * WORD : min(last * WORD, size)]
        yield first * WORD, part, _words(torch, memory.device, pattern, seed, first, last, words)


def _words(
    torch: Any, device: Any, pattern: Pattern, seed: int, first: int, last: int, count: int
) -> Any:
    numbers = torch.arange(first, last, dtype=torch.int64, device=device)
    if pattern is Pattern.CONSTANT:
        numbers = torch.zeros_like(numbers)
    words = _drawn(numbers, seed)
    if pattern is Pattern.SPLIT:
        even = numbers // (CHUNK // WORD) % 2 == 0
        return torch.where(even, ~words, words)
    if not pattern.is_of_numbers:
        return words
    if device.type == "mps":
        raise Unsupported("Metal has no numbers of double precision")
    made = _number(torch, words)
    if pattern in (Pattern.ADDED, Pattern.TRIAD):
        c = _number(torch, _drawn(numbers + count, seed))
        made = made + (c if pattern is Pattern.ADDED else 3 * c)
    elif pattern is Pattern.SCALED:
        made = 3 * made
    return made.view(torch.int64)


def _drawn(numbers: Any, seed: int) -> Any:
    words = (numbers + signed(seed * SEED_FACTOR)) * signed(INDEX_FACTOR)
    return words ^ (words >> _SHIFT & _KEPT)


def _number(torch: Any, words: Any) -> Any:
    return 1 + (words >> _MANTISSA_SHIFT & _MANTISSA_KEPT).to(torch.float64) * _MANTISSA


def signed(word: int) -> int:
    word %= 1 << 64
    return word - (1 << 64) if word >> 63 else word
