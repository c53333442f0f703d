"""Disjoint pairs that are measured at the same time: a round-robin tournament."""

from __future__ import annotations

from collections.abc import Sequence


def tournament(players: Sequence[str]) -> dict[tuple[str, str], int]:
    """A round for each ordered pair, so that no player meets two others in one round.

    N − 1 rounds of disjoint pairs (N for an odd number) by the circle method: one player stays, the
    others move on by one place. Each round is played twice, once per direction, hence twice as many
    numbers. Pairs that share no player and have the same round number can be measured at once.
    """
    circle: list[str | None] = list(players)
    if len(circle) % 2:
        circle.append(None)
    rounds: dict[tuple[str, str], int] = {}
    for number in range(len(circle) - 1):
        for place in range(len(circle) // 2):
            one, other = circle[place], circle[-1 - place]
            if one is not None and other is not None:
                rounds[one, other] = 2 * number
                rounds[other, one] = 2 * number + 1
        circle.insert(1, circle.pop())
    return rounds
