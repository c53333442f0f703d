"""Waivers: what is known and accepted is shown as waived, changes no exit code, and wakes up."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from command_kit import called
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.cli import common
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.judge.waivers import read_waivers
from linkgauge.model.errors import InputError
from linkgauge.model.settings import Settings

SLOW = "slow sim:3 rate=70%"
LINKS = "slow sim:2-nvswitch rate=50%"
NAMES = ("device_to_device_memcpy_write_ce", "host_to_device_memcpy_ce", "device_local_copy")
TODAY = date.fromisoformat("2026-11-21")
WHO = "owner: ops, reason: known, until: 2027-06-30"


@pytest.fixture(scope="module")
def runs():
    """Runs of a healthy machine and of two faulty ones."""
    settings = Settings((64 << 20,), precision=0.05, max_time=0.1)
    return {
        fault: replace(
            run_of("dgx-h200-8", load("dgx-h200-8")[1], *NAMES, settings=settings,
                   faults=[fault] if fault else []),
            started=f"{TODAY}T20:15:00Z",
        )
        for fault in ("", SLOW, LINKS)
    }  # fmt: skip


@pytest.fixture
def file(tmp_path):
    def written(*entries):
        path = tmp_path / "waivers.yml"
        lines = (f"  - {{{one if 'until' in one else f'{one}, {WHO}'}}}\n" for one in entries)
        path.write_text(f"waivers:\n{''.join(lines) or '  []'}")
        return path

    return written


CLOCKS = "check: clocks, accept: warn"
D2D = 'cell: "device_to_device_memcpy_write_ce *", part: "sim:3", accept: ">= 250 GB/s"'
H2D = 'cell: "host_to_device_memcpy_ce *", part: "sim:3", accept: ">= 35 GB/s"'
LOCAL = 'cell: "device_local_copy *", part: "sim:3", accept: ">= 1.3 TB/s"'
YESTERDAY = TODAY - timedelta(days=1)
SITUATIONS = {
    # what is waived; the fault; the exit code; what is said of waivers that cover nothing
    "a finding, right": (["check: slow, accept: '>= 65 %'", CLOCKS], SLOW, 0, []),
    "a finding of this part": (["check: slow, part: 'sim:3', accept: '>= 65 %'"], SLOW, 0, []),
    "another part": (["check: slow, part: 'sim:4', accept: '>= 65 %'"], SLOW, 1,
                     ["covers nothing"]),
    "a pattern of parts": (["check: slow, part: 'sim:?', accept: '>= 65 %'"], SLOW, 0, []),
    "worse than accepted": (["check: slow, accept: '>= 80 %'"], SLOW, 1, ["worse than >= 80 %"]),
    "expired": ([f"check: slow, accept: '>= 65 %', owner: a, reason: b, until: {YESTERDAY}"],
                SLOW, 1, [f"ended on {YESTERDAY}"]),
    "the last day": ([f"check: slow, accept: '>= 65 %', owner: a, reason: b, until: {TODAY}"],
                     SLOW, 0, []),
    "a warning, and it is a failure": (["check: fabric-links, accept: '<= 9 links'",
                                        "check: slow, accept: '>= 45 %'"], LINKS, 0, []),
    "more links are down": (["check: fabric-links, accept: '<= 4 links'"], LINKS, 1,
                            ["worse than <= 4 links"]),
    "cells, and the findings on them": ([D2D, H2D, LOCAL], SLOW, 0, []),
    "cells, of which one is not named": ([D2D, H2D], SLOW, 1, []),
    "cells that are worse": ([D2D.replace("250", "350"), H2D, LOCAL], SLOW, 1, ["is worse than"]),
    "two that overlap": (["check: slow, accept: '>= 65 %'", "check: slow, accept: '>= 60 %'"],
                         SLOW, 0, ["is covered by waivers.yml line 2"]),
    "unused": (["check: link-width, accept: '>= 8 lanes'"], "", 0, ["link-width was not found"]),
    "another host": (["check: slow, host: 'node*', accept: '>= 65 %'"], SLOW, 1, []),
    "this host": (["check: slow, host: 'dgx', accept: '>= 65 %'"], SLOW, 0, []),
    "none": ([], SLOW, 1, []),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_situations(name, runs, file):
    entries, fault, code, said = SITUATIONS[name]
    run = judge(replace(runs[fault], waivers=read_waivers(file(*entries))))
    outcome = outcome_of(run)
    assert outcome.code == code
    notes = [one.found for one in outcome.waived if one.check == "waiver"]
    assert len(notes) == len(said)
    assert all(text in note for text, note in zip(said, notes, strict=True))
    if fault:
        shown = [one for one in (*outcome.findings, *outcome.waived) if one.check == "slow"]
        assert shown, "a waived finding is shown, too"
        verdicts = {cell.verdict for result in run.results for cell in result.cells}
        is_waived = any(one.severity == "waived" for one in shown) or "waived" in verdicts
        assert is_waived == (code == 0 or name in ("cells, of which one is not named",
                                                   "cells that are worse"))  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("check: link-with, accept: '>= 8 lanes'", "did you mean 'link-width'"),
        ("check: nonsense, accept: warn", "linkgauge doctor --checks lists them"),
        ("check: wrong-bytes, accept: fail", "wrong-bytes cannot be waived"),
        ("check: link-width, accept: '>= 8 links'", "a value in lanes"),
        ("check: link-width, accept: fail", "a value in lanes"),
        ("check: acs, accept: '>= 8 lanes'", "warn or fail"),
        ("check: acs, cell: '*', accept: warn", "either check, an id, or cell"),
        ("cell: '*', accept: '>= 90 % of achievable'", "a median"),
        ("check: acs, accept: warn, owner: a, reason: b, until: soon", "write 2027-06-30"),
        ("check: acs, accept: warn, reason: b, until: 2027-01-01", "missing owner"),
        ("check: acs, accept: warn, colour: red", "unknown field 'colour'"),
    ],
)
def test_a_wrong_waiver_is_one_line_with_its_place(entry, said, file):
    result = called("check", "--machine", "dgx-h200-8", "--waivers", file(entry))
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "waivers.yml line 2: " in line
    assert said in line


@pytest.mark.parametrize("text", ["waivers: {a: b}", "- x", "waivers: [", "limits: []"])
def test_a_file_of_another_form_is_refused(text, tmp_path):
    path = tmp_path / "w.yml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"w.yml"):
        read_waivers(path)


def simulated(*more):
    return ("--machine", "dgx-h200-8", "--fault", SLOW, *more)


ALL = ("check: slow, part: 'sim:3', accept: '>= 65 %'", CLOCKS, D2D, H2D, LOCAL,
       "cell: '*', part: 'sim:3', accept: '>= 1 GB/s'",
       "cell: '*', part: 'sim:3', accept: '<= 1 s'")  # fmt: skip
MEASURED = ("--profile", "quick", *NAMES, "--no-report")


def test_run_check_gate_and_exporter_use_the_same_waivers(file, tmp_path, monkeypatch):
    waivers = file(*ALL)
    healthy = called("run", "--machine", "dgx-h200-8", "--label", "good", *MEASURED, cwd=tmp_path)
    assert healthy.returncode == 0
    for more, code in (((), 1), (("--waivers", waivers), 0)):
        run = called("run", *simulated(*more), "--label", f"c{code}", *MEASURED, cwd=tmp_path)
        assert run.returncode == code
        assert called("check", *simulated(*more), cwd=tmp_path).returncode == code
        gate = called("gate", "--baseline", "good", "--current", "c1", "--json", *more,
                      cwd=tmp_path)  # fmt: skip
        assert gate.returncode == code
        shown = {one["verdict"] for one in json.loads(gate.stdout)["cells"]}
        assert ("waived" in shown) == (code == 0)
        runs_below = "results/simulated-dgx-h200-8"
        text = called("exporter", "--textfile", "m.prom", "--results", runs_below,
                      "--all-hosts", "--label", "c1", *more, cwd=tmp_path)  # fmt: skip
        assert text.returncode == 0, text.stderr
        metrics = Path(tmp_path / "m.prom").read_text()
        word = "ok" if more else "fail"
        (line,) = [one for one in metrics.splitlines() if f'verdict="{word}"' in one]
        assert line.endswith(" 1.0")
    assert "verdict:   ok: nothing wrong was found but what is waived" in run.stdout
    # The file of the machine counts without being named, and the kept run keeps its waivers.
    monkeypatch.setattr(common, "WAIVERS_FILE", waivers)
    assert called("check", *simulated(), cwd=tmp_path).returncode == 0
    assert called("show", "c0", cwd=tmp_path).returncode == 0


def test_what_rests_on_a_waived_finding_is_waived_in_every_output(file, tmp_path):
    """Its cells, too: an alert looks at these."""
    waivers = file("check: slow, part: 'sim:3', accept: '>= 65 %'", CLOCKS)
    done = called("run", *simulated("--waivers", waivers), "--label", "x", "--profile", "quick",
                  *NAMES, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0
    assert "56 ok, 0 low, 16 low and waived" in done.stdout
    assert "until 2027-06-30, by ops: known (waivers.yml line 2)" in " ".join(done.stdout.split())
    summary = json.loads(called("export", "x", "--json", cwd=tmp_path).stdout)
    assert (summary["verdict"], summary["exit_code"]) == ("ok", 0)
    assert {one["verdict"] for one in summary["cells"]} >= {"ok", "waived"}
    assert "low" not in {one["verdict"] for one in summary["cells"]}
    (slow,) = (one for one in summary["findings"] if one["check"] == "slow")
    assert (slow["severity"], slow["waived"]["owner"]) == ("waived", "ops")
    called("exporter", "--textfile", "m.prom", "--results", "results/simulated-dgx-h200-8",
           "--all-hosts", cwd=tmp_path)  # fmt: skip
    metrics = (tmp_path / "m.prom").read_text().splitlines()
    shown = {one.rpartition(" ")[2] for one in metrics if one.startswith("linkgauge_cell_verdict{")}
    assert shown == {"0.0", "-0.25"}
    assert called("report", "x", "-o", "r.html", cwd=tmp_path).returncode == 0
    assert "low and waived" in (tmp_path / "r.html").read_text()
