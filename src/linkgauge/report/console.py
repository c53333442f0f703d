"""The console that everything for people is printed on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from .histogram import BARS

WIDE = 100_000
"""Columns of a pipe or a file, where lines are for programs: nothing is wrapped or folded."""

_SIZE = re.compile("[0-9]{1,6}")

# Control characters, and those that change the text's direction (Unicode's Bidi_Control).
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
UNSEEN = dict.fromkeys((*range(32), *range(127, 160), *_TURNING), "�")
del UNSEEN[ord("\n")], UNSEEN[ord("\t")]
# As wide as what they stand for, so that columns stay aligned.
_PLAIN = dict(zip(f"{BARS}▼▲↓·±→←×÷µ–…", "_.,-=+*#v^|.~><x/u-~", strict=True))


class _Console(Console):
    """A console that replaces control characters in results and captures, and signs that the
    stream's encoding lacks."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                text = _encodable(segment.text.translate(UNSEEN), self.encoding)
                yield Segment(text, segment.style)


def _encodable(text: str, encoding: str) -> str:
    """The text with characters that the encoding lacks replaced by similar ones of ASCII."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = (one if _has(encoding, one) else _PLAIN.get(one, "?") for one in text)
        return "".join(plain)
    return text


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def make_console(*, stderr: bool = False) -> Console:
    """A console with colour on a terminal only. Lines are as wide as the terminal; elsewhere as
    COLUMNS says, or without it as long as they are. What does not wrap itself is never wrapped."""
    environment = _with_a_size(os.environ)
    console = _Console(
        stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True,
        _environ=environment,
    )  # fmt: skip
    if not console.is_terminal and "COLUMNS" not in environment:
        console.width = WIDE
    return console


def _with_a_size(environment: Mapping[str, str]) -> dict[str, str]:
    """Without COLUMNS and LINES that are no size: a width of 0 would show nothing at all."""
    return {
        name: text
        for name, text in environment.items()
        if name not in ("COLUMNS", "LINES") or (_SIZE.fullmatch(text) and 0 < int(text) <= WIDE)
    }
