"""Disjoint pairs that are measured at the same time: a round-robin tournament."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def tournament(players: Sequence[str]) -> dict[tuple[str, str], int]:
    """A round for each ordered pair, so that no player meets two others in one round.

    N − 1 rounds of disjoint pairs (N for an odd number). Each round is played twice, once per
    direction, hence twice as many numbers. Pairs that share no player and have the same round
    number can be measured at once.
    """
    rounds: dict[tuple[str, str], int] = {}
    meetings = _exchanges if len(players).bit_count() == 1 else _circle
    for number, met in enumerate(meetings(players)):
        for one, other in met:
            rounds[one, other] = 2 * number
            rounds[other, one] = 2 * number + 1
    return rounds


_Met = Iterator[tuple[str, str]]


def _exchanges(players: Sequence[str]) -> Iterator[_Met]:
    """Of a power of two: in each round, those whose numbers differ in the same bits. Neighbours
    then meet neighbours, and what groups of them share is shared evenly."""
    for bits in range(1, len(players)):
        yield ((one, players[at ^ bits]) for at, one in enumerate(players) if at < at ^ bits)


def _circle(players: Sequence[str]) -> Iterator[_Met]:
    """Of any number, by the circle method: one player stays, the others move on by one place."""
    circle: list[str | None] = list(players)
    if len(circle) % 2:
        circle.append(None)
    for _ in range(len(circle) - 1):
        met = zip(circle[: len(circle) // 2], circle[::-1], strict=False)
        yield ((one, other) for one, other in met if one is not None and other is not None)
        circle.insert(1, circle.pop())
