"""A loss after a change of the machine is found in every run until its level is accepted."""

import json

import pytest

from command_kit import called
from history_kit import run_at
from linkgauge.history.keeping import not_added
from linkgauge.history.reading import Filter, earlier_runs, runs_of
from linkgauge.history.records import microseconds
from linkgauge.history.store import opened
from linkgauge.history.writing import accept
from linkgauge.uses.earlier_runs import since

BEFORE = 8


@pytest.fixture
def measured(url, monkeypatch):
    """Measures a run: returns what is lost against earlier runs, and how many before it lost it."""
    monkeypatch.setenv("LINKGAUGE_HISTORY", url.render_as_string(hide_password=False))

    def measure(number, figure=50e9, **more):
        run, _ = since(run_at(number, figure, **more))
        assert not_added(run, None) is None
        known = run.earlier or None
        return known and (len(known.lost), known.since, list(known.changed))

    for number in range(BEFORE):
        measure(number)
    return measure


def low(measured, numbers, driver="580"):
    """What is said of runs that are 10 % slower."""
    return [measured(number, 45e9, driver=driver) for number in numbers]


def accepted(url, name):
    """Accepts the level of this run; returns the runs whose level is accepted then."""
    with opened(url) as store:
        (run,) = (one for one in runs_of(store, Filter()) if one.id == name)
        accept(store, run, microseconds("2027-01-01"))
        return [one.id for one in runs_of(store, Filter()) if one.accepted]


def test_a_loss_after_a_change_of_state_is_found_in_each_later_run(measured):
    found = low(measured, range(BEFORE, BEFORE + 30))
    assert found == [(2, before, ["driver"]) for before in range(20)] + [(2, 20, ["driver"])] * 10


def test_another_change_of_state_does_not_make_the_loss_usual(measured):
    low(measured, range(8, 12))
    assert low(measured, range(12, 16), driver="590") == [(2, n, ["driver"]) for n in range(4, 8)]


def test_a_run_that_recovered_is_no_loss_and_the_next_loss_begins_anew(measured):
    low(measured, range(8, 11))
    assert measured(11, driver="580") == (0, 0, ["driver"])
    assert low(measured, [12])[0][:2] == (2, 0)


def test_a_change_of_state_without_a_loss_forgets_nothing(measured):
    assert [measured(number, driver="580") for number in (8, 9)] == [(0, 0, ["driver"]), (0, 0, [])]
    assert low(measured, [10, 11]) == [(2, 0, []), (2, 1, [])]


def test_an_accepted_level_is_the_usual_one(measured, url):
    low(measured, range(8, 11))
    assert accepted(url, "r010") == ["r010"]
    assert low(measured, [11, 12]) == [None, None], "one run does not show what is usual"
    assert low(measured, range(13, 17))[-1] == (0, 0, [])
    assert measured(17, 40e9, driver="580")[:2] == (2, 0)
    with opened(url) as store:
        assert [one.run.id for one in earlier_runs(store, run_at(12))] == ["r011", "r010"]


def test_runs_of_the_level_before_it_was_accepted_count(measured, url):
    low(measured, range(8, 14))
    accepted(url, "r008")
    assert low(measured, [14]) == [(0, 0, [])]


def test_another_run_takes_the_place_of_the_accepted_one(measured, url):
    low(measured, range(8, 11))
    accepted(url, "r010")
    assert accepted(url, "r000") == ["r000"]
    assert low(measured, [11]) == [(2, 3, [])]


def shows(*words):
    done = called("history", *words, COLUMNS=200)
    return done.returncode, done.stdout, done.stderr


def test_the_command_accepts_the_latest_or_a_named_run(measured):
    low(measured, range(8, 10))
    said = ", NVIDIA H200 are compared with run {} and the runs after it\n"
    for words, name in (((), "r009"), (("r008",), "r008")):
        code, out, err = shows("accept", *words)
        assert (code, err) == (0, "")
        assert out.startswith("accepted: later runs of ")
        assert out.endswith(said.format(name))
        runs = json.loads(shows("--json")[1])["runs"]
        assert [run["id"] for run in runs if run["accepted"]] == [name]
    assert "2 of 2 cells passed, 2 worse than before, accepted" in shows()[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["r00"], "linkgauge: the history has no complete run called 'r00', did you mean 'r0"),
        (["zzz"], "linkgauge: the history has no complete run called 'zzz'\n"),
        (
            ["--label", "weekly"],
            "linkgauge: the history has no complete run that these options take\n",
        ),
        (["r001", "r002"], "linkgauge: history accept takes no 'r002'\n"),
        (["--json"], "linkgauge: --json is of list and trend\n"),
    ],
)
def test_a_wrong_name_is_one_line(words, said, measured):
    code, out, err = shows("accept", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(said)
