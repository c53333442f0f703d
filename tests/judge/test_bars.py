"""The rates of *which part is slow*: a few draws of campaign_bars.py in every test run."""

import pytest

from campaign import SEED
from campaign_bars import BARS, drawn
from campaigns import trials

MET = {
    "single": ("named", "named or declared", "no false fail"),
    "several": ("all named", "no false fail"),
    "healthy": ("quiet", "no stall"),
    "stalls": ("named",),
    "undetectable": ("not named in five of five",),
}


@pytest.mark.parametrize("bar", BARS)
def test_a_rate_holds(bar, holds):
    name = f"which part, {bar}: "
    found = [drawn(bar, SEED, number) for number in range(trials(name + MET[bar][0]))]
    print(*(draw.note for draw in found), sep="\n")
    assert all(draw.met.keys() == set(MET[bar]) for draw in found)
    for what in MET[bar]:
        holds(name + what, sum(draw.met[what] for draw in found), len(found))
