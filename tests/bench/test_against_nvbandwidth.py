"""The comparison with nvbandwidth, over fabricated documents and stand-ins for both programs."""

import json
import shlex
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import against_nvbandwidth as bench
import nvbandwidth_figures as figures
import nvbandwidth_judge as judge
from fakes import device, machine
from linkgauge.engine.journal import Journal, Measured, Opened
from linkgauge.model.result import CellResult, Part, PlannedSheet, Result, Run, Settings
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from nvbandwidth_document import exit_status, make_sections, problems_of, render
from nvbandwidth_figures import DEVICE_TESTS, HOST_TESTS, PARTS, TESTS, UNITS, Key
from nvbandwidth_plan import TUNED_BARS, Campaign, Record, command_line, linkgauge_command, schedule

SIZE = 512 << 20
BIDIRECTIONAL = "device_to_device_bidirectional_memcpy_read_sm"


def places(test):
    """Rows and columns of a test on two devices."""
    return (("0", "1"), ("1", "0") if test.startswith("device_to_device") else ("0", "0"))


def figure(test):
    """What the fabricated machine reaches, GB/s or ns."""
    return 700.0 if UNITS[test].symbol == "s" else 50.0


def theirs(tests=TESTS, factor=1.0, **more):
    def matrix(test, value):
        held = dict.fromkeys(places(test), f"{value * factor:g}")
        rows = ("0", "1") if test.startswith("device_to_device") else ("0",)
        return [[held.get((row, column), "N/A") for column in ("0", "1")] for row in rows]

    def case(test):
        values = (*(figure(test) for _ in PARTS[test]), figure(test) * max(1, len(PARTS[test])))
        matrices = [row for value in values for row in matrix(test, value)]
        return {"name": test, "status": "Passed", "bandwidth_matrix": matrices, "sum": 1.0}

    cases = [case(test) for test in tests]
    head = {"Driver Version": "580.1", "GPU Device list": ["0: Fake"], "version": "v0.8"}
    return {"nvbandwidth": {**head, "testcases": cases, **more}}


def cell(test, row, column, factor=1.0, width=0.001, **more):
    value = figure(test) * UNITS[test].scale * factor
    one = (value,) * 6
    parts = tuple(Part(n, SIZE, one, summarize(one)) for n in range(len(PARTS[test])))
    total = value * max(1, len(parts))
    samples = [total * (1 + width * step) for step in (-1, -0.5, 0, 0, 0.5, 1)]
    return CellResult(
        row, column, ("cuda:0 -> cuda:1 by ce",), Report.FIRST, more.pop("status", "pass"),
        verified=more.pop("verified", None if UNITS[test].symbol == "s" else True),
        samples=tuple(samples), summary=more.pop("summary", summarize(samples)), parts=parts,
        **more,
    )  # fmt: skip


def result(test, cells):
    unit = UNITS[test]
    return Result(
        benchmark=test, title=test, backend="cuda", size=SIZE, unit=unit.symbol,
        better=unit.better, parts=PARTS[test], status="pass", cells=tuple(cells),
    )  # fmt: skip


def ours(tests=TESTS, factor=1.0, **more):
    return run_of(
        [result(t, [cell(t, *place, factor, **more) for place in places(t)]) for t in tests]
    )


def run_of(results):
    return Run(
        id="r", label="l", command=("linkgauge",), started="s", finished="f",
        machine=machine([device(0, "cuda")]), settings=Settings((SIZE,)), results=tuple(results),
    )  # fmt: skip


def both():
    return figures.read_linkgauge(ours()).figures, figures.read_nvbandwidth(theirs()).figures


def record(tool, scope, number=1, document=None, **more):
    if isinstance(document, Run):
        document = json.loads(msgspec.json.encode(document))
    more = {"seconds": 20.0, "command": (f"/some/where/{tool}", "run"), **more}
    return Record(tool=tool, scope=scope, round=number, document=document, **more)


def campaign(mode, *records, rounds=1, **more):
    started = "2026-11-21T20:15:00+00:00"
    return Campaign(mode=mode, rounds=rounds, started=started, records=records, **more)


def whole(rounds=2, factor=1.0, tuned=1.02):
    records = []
    for number in range(1, rounds + 1):
        records += [
            record("linkgauge", "tuned", number, ours(TUNED_BARS, tuned)),
            record("nvbandwidth", "tuned", number, theirs(TUNED_BARS)),
            record("linkgauge", "suite", number, ours(factor=factor)),
            record("nvbandwidth", "suite" if number == 1 else "host", number,
                   theirs(TESTS if number == 1 else HOST_TESTS)),
        ]  # fmt: skip
    return campaign("all", *records, rounds=rounds)


class TestFigures:
    def test_all_35_tests_are_of_one_kind_or_the_other(self):
        assert len(TESTS) == 35
        assert sorted(DEVICE_TESTS + HOST_TESTS) == sorted(TESTS)
        assert "host_device_latency_sm" in DEVICE_TESTS
        assert len(HOST_TESTS) == 16

    def test_both_tools_name_the_same_figures_in_the_same_unit(self):
        left, right = both()
        assert left.keys() == right.keys()
        assert left == pytest.approx(right)
        assert right[Key("host_to_device_memcpy_ce", "", "0", "1")] == pytest.approx(50e9)
        assert right[Key("device_to_device_latency_sm", "", "1", "0")] == pytest.approx(700e-9)

    def test_three_matrices_are_the_two_directions_and_the_total(self):
        rows = [["N/A", "1"], ["2", "N/A"], ["N/A", "3"], ["4", "N/A"], ["N/A", "5"], ["6", "N/A"]]
        case = {"name": BIDIRECTIONAL, "status": "Passed", "bandwidth_matrix": rows}
        read = figures.read_nvbandwidth({"nvbandwidth": {"testcases": [case]}}).figures
        assert {str(key): value / 1e9 for key, value in read.items()} == {
            "0,1 read1": 1, "1,0 read1": 2, "0,1 read2": 3, "1,0 read2": 4, "0,1": 5, "1,0": 6,
        }  # fmt: skip

    def test_what_has_no_figure_is_told(self):
        cases = [
            {"name": "all_to_one_read_ce", "status": "Waived"},
            {"name": BIDIRECTIONAL, "status": "Passed", "bandwidth_matrix": [["1"]]},
            {"name": "device_local_copy", "status": "Passed", "bandwidth_matrix": [["fast"]]},
            {"name": "all_to_one_write_ce", "status": "Passed", "bandwidth_matrix": [["0.00"]]},
            {"name": "some_new_test", "status": "Error"},
        ]
        read = figures.read_nvbandwidth({"nvbandwidth": {"testcases": cases, "error": "lost"}})
        assert not read.figures
        told = [problem.split(":")[0].split()[0] for problem in read.problems]
        assert told == ["lost", *(cases[place]["name"] for place in (1, 2, 3, 0))]

    def test_cells_that_did_not_pass_have_no_figure(self):
        test = "device_to_device_memcpy_read_ce"
        wrong = cell(test, "0", "1", status="fail", reason="wrong at byte 7")
        absent = cell(test, "1", "0", status="skip", reason="no path", summary=None)
        read = figures.read_linkgauge(run_of([result(test, [wrong, absent])]))
        assert not read.figures
        assert read.problems == (f"{test} 0,1: fail: wrong at byte 7",)

    def test_the_last_whole_document_counts(self):
        first, last = (json.dumps({"nvbandwidth": {"error": word}}) + "\n" for word in "ab")
        assert figures.last_document("") is None
        assert figures.last_document("{broken") is None
        cut = last.replace("}", "")
        for text in (f"warning {{x}}\n{last}", first + last, last + cut, last + '{"a": {"b": 2}}'):
            assert figures.last_document(text) == {"nvbandwidth": {"error": "b"}}


    def test_keys_are_told_by_where_they_stand(self):
        document = {"a": 1, "b": {"c": [{"d": 2}, {"e": [3]}]}}
        assert figures.key_paths(document) == {"a", "b", "b.c", "b.c[].d", "b.c[].e"}


class TestJudging:
    def test_device_bars(self):
        def verdicts(test, *ratios):
            return list(map(judge.device_bar(test).judge, ratios))

        assert verdicts("device_local_copy", 0.9899, 0.99, 2) == ["MISSED", "ok", "ok"]
        assert verdicts("all_to_one_read_sm", 0.9979, 0.998) == ["MISSED", "ok"]
        assert verdicts("host_device_latency_sm", 0.969, 1.03, 1.04) == ["MISSED", "ok", "MISSED"]

    def test_devices_compare_the_figures_both_have(self):
        left, right = both()
        del right[Key("device_local_copy", "", "0", "1")]
        left[Key("all_to_one_read_sm", "", "0", "1")] *= 0.9
        rows = {row.test: row for row in judge.compare_devices(left, right)}
        assert tuple(rows) == DEVICE_TESTS
        assert rows["device_local_copy"].verdict == "not measured"
        assert [str(key) for key in rows["device_local_copy"].alone] == ["0,1"]
        assert rows["all_to_one_read_sm"].verdict == "MISSED"
        assert min(rows["all_to_one_read_sm"].ratios) == pytest.approx(0.9)
        assert len(rows[BIDIRECTIONAL].ratios) == 6
        assert rows[BIDIRECTIONAL].verdict == "ok"

    @pytest.mark.parametrize(
        ("mine", "other", "verdict", "clause"),
        [
            ([100, 99], [100, 100], "ok", "ratio"),
            ([95, 95], [100, 94, 100], "ok", "their spread"),
            ([93, 93], [100, 94, 100], "MISSED", ""),
            ([95], [100], "MISSED", ""),
            ([], [100], "not measured", ""),
        ],
    )
    def test_host_cells_hold_by_either_clause(self, mine, other, verdict, clause):
        key = Key(HOST_TESTS[0], "", "0", "0")
        rows = judge.compare_hosts([{key: v} for v in mine], [{key: v} for v in other])
        assert len(rows) == len(HOST_TESTS), "a test without figures has a row"
        row = next(row for row in rows if row.key == key)
        assert (row.verdict, row.clause) == (verdict, clause)

    def test_tuned_bars(self):
        keys = {test: Key(test, "", "0", "1") for test in TUNED_BARS}
        mine = [dict.fromkeys(keys.values(), 1.0045)]
        rows = judge.compare_tuned(mine, [dict.fromkeys(keys.values(), 1.0)], TUNED_BARS)
        assert [row.verdict for row in rows] == ["MISSED", "ok", "MISSED"]

    def test_spread(self):
        assert judge.spread([1.0, 1.1, 0.9]) == pytest.approx(0.2)
        assert judge.spread([1.0]) is None
        assert judge.spread([0.0, 0.0]) is None

    def test_worst(self):
        ok, missed, absent = "ok", "MISSED", "not measured"
        found = [judge.worst(some) for some in ([], [ok], [ok, absent], [absent, missed, ok])]
        assert found == [absent, ok, absent, missed]

    def test_suite_counts_what_is_inexact_unverified_or_failed(self):
        test = "device_to_device_memcpy_read_ce"
        cells = [
            cell(test, "0", "1"),
            cell(test, "1", "0", width=0.02),
            cell(test, "1", "2", verified=None),
            cell(test, "2", "1", status="error", summary=None, verified=None),
        ]
        chase = "host_device_latency_sm"
        run = run_of([result(test, cells), result(chase, [cell(chase, "0", "0")])])
        found = judge.examine_suite(1, 20.0, run)
        assert (found.cells, found.exact, found.not_verified, found.not_pass) == (5, 3, 2, 1)
        assert found.verdict == "MISSED"
        assert judge.examine_suite(1, 25.0, ours()).verdict == "ok"
        assert judge.examine_suite(1, 25.1, ours()).verdict == "MISSED"

    def test_spreads_have_a_limit_or_are_held_to_theirs_cell_by_cell(self):
        steady, host = DEVICE_TESTS[0], HOST_TESTS[0]
        a, b = Key(host, "", "0", "0"), Key(host, "", "0", "1")
        mine = [{Key(steady, "", "0", "1"): v, a: v, b: v} for v in (100.0, 100.9)]
        other = [{a: 100.0, b: 100.0}, {a: 100.5, b: 102.0}]
        rows = {row.test: row for row in judge.compare_spreads(mine, other)}
        assert rows[steady].verdict == "ok"
        assert (rows[host].verdict, rows[host].wider, rows[host].cells) == ("MISSED", 1, 2)
        assert rows[host].theirs == pytest.approx(2 / 101)
        assert rows[DEVICE_TESTS[1]].verdict == "not measured"


    def test_as_is_held_to_one_percent_or_to_their_own_differences(self):
        steady, host = Key("device_local_copy", "", "0", "1"), Key(HOST_TESTS[0], "", "0", "0")
        others = [{steady: 100.0, host: value} for value in (100.0, 104.0, 98.0)]

        def verdicts(mine, host_value):
            rows = judge.compare_as({steady: mine, host: host_value}, others)
            return [row.verdict for row in rows if row.key in (steady, host)]

        assert verdicts(100.99, 94.01) == ["ok", "ok"]
        assert verdicts(98.99, 106.01) == ["MISSED", "MISSED"]
        assert [row.verdict for row in judge.compare_as({}, others)] == ["not measured"] * 35

    def test_their_own_runs_miss_that_bar_as_well(self):
        key = Key(HOST_TESTS[0], "", "0", "0")
        runs = [{key: value} for value in (100.0, 100.1, 100.2, 104.0)]
        assert judge.own_misses(runs) == [0, 0, 0, 1]
        assert judge.own_misses(runs[:2]) == []


class TestPlan:
    def test_all_shares_runs(self):
        rounds = schedule("all", 2, False)
        assert all([one.tool for one in pair] == ["linkgauge", "nvbandwidth"] for pair in rounds)
        scopes = [tuple(one.scope for one in pair) for pair in rounds]
        assert scopes == [("tuned", "tuned")] * 2 + [("suite", "suite"), ("suite", "host")]

    def test_runs_of_each_mode(self):
        modes = ("device", False), ("host", False), ("suite", False), ("suite", True)
        counts = [sum(map(len, schedule(mode, 3, theirs))) for mode, theirs in modes]
        assert counts == [2, 6, 3, 4]

    def test_as_stands_between_theirs(self):
        steps = [step for (step,) in schedule("as", 5, False)]
        assert [step.scope for step in steps] == ["suite", "host", "as", "host", "host", "host"]
        assert [step.tool for step in steps].index("linkgauge") == 2
        assert linkgauge_command(("lg",), "as", "O", ())[1:3] == ("as", "nvbandwidth")

    def test_only_tuned_runs_are_tuned(self):
        assert "--untuned" in linkgauge_command(("lg",), "suite", "O", ())
        command = linkgauge_command(("lg",), "tuned", "O", ("--max-time", "2"))
        assert "--untuned" not in command
        assert command[-2:] == ("--max-time", "2")

    def test_command_lines_tell_nothing_of_the_machine(self):
        one = record("linkgauge", "host", command=("/a/python", "-m", "x", "--out", "/tmp/q/1"))
        assert command_line(one) == "python -m x --out DIR"


class TestDocument:
    def test_all_bars_held(self):
        one = whole()
        sections = make_sections(one)
        assert exit_status(sections, interrupted=False, problems=False) == 0
        text = render(one, sections, problems_of(one))
        assert text.startswith("## Beside nvbandwidth, 2026-11-21\n")
        assert text.count("\n### ") == 4
        for expected in ("Fake Card X1", "v0.8", "nvbandwidth's whole suite took 20.0 s", "100.0%"):
            assert expected in text
        assert "/some/where" not in text

    def test_a_missed_bar_is_told(self):
        one = whole(factor=0.97)
        assert exit_status(make_sections(one), interrupted=False, problems=False) == 1

    def test_an_error_is_told_and_the_rest_is_kept(self):
        one = whole()
        broken = record("nvbandwidth", "host", 2, trouble="exit status 1: no GPU")
        one = msgspec.structs.replace(one, records=(*one.records[:-1], broken))
        sections, problems = make_sections(one), problems_of(one)
        text = render(one, sections, problems)
        assert "- nvbandwidth host 2: exit status 1: no GPU" in text
        assert "linkgauge 2, nvbandwidth 1 of 2" in text
        assert exit_status(sections, interrupted=False, problems=bool(problems)) == 3

    @pytest.mark.parametrize("mode", ["device", "host", "tuned", "suite", "as", "all"])
    def test_nothing_measured_is_still_a_document(self, mode):
        one = campaign(mode, stopped="the budget was spent")
        sections = make_sections(one)
        assert "the budget was spent" in render(one, sections, ())
        assert exit_status(sections, interrupted=False, problems=False) == 3
        assert exit_status(sections, interrupted=True, problems=False) == 130

    def test_raw_data_comes_back(self):
        one = whole()
        again = msgspec.json.decode(msgspec.json.encode(one), type=Campaign)
        texts = [render(c, make_sections(c), problems_of(c)) for c in (one, again)]
        assert texts[0] == texts[1]


class TestProcesses:
    """The edge, with stand-ins that print fabricated documents."""

    @pytest.fixture
    def call(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(bench.signal, "signal", lambda *_: None)

        def program(name, body):
            path = tmp_path / name
            path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(body))
            path.chmod(0o755)
            return str(path)

        def call(mode, linkgauge, nvbandwidth, *more):
            raw = tmp_path / "raw.json"
            words = (
                mode, "--json", str(raw),
                "--linkgauge", shlex.join([program("linkgauge", linkgauge)]),
                "--nvbandwidth", program("nvbandwidth", nvbandwidth), *more,
            )  # fmt: skip
            monkeypatch.setattr(sys, "argv", ["against_nvbandwidth", *words])
            code = bench.main()
            return code, capsys.readouterr(), msgspec.json.decode(raw.read_bytes(), type=Campaign)

        return call

    @pytest.fixture
    def documents(self, tmp_path):
        def write(name, data):
            (tmp_path / name).write_bytes(msgspec.json.encode(data))
            return f"print(open({str(tmp_path / name)!r}).read())"

        return write("ours", ours()), write("theirs", theirs())

    def test_a_comparison_from_end_to_end(self, call, documents, monkeypatch, capsys, tmp_path):
        code, said, raw = call("all", documents[0], documents[1], "--rounds", "2")
        assert code == 1, "what is not tuned misses the bars of tuning"
        assert len(raw.records) == 8
        assert said.err.count("linkgauge suite") == 2
        monkeypatch.setattr(sys, "argv", ["x", "report", str(tmp_path / "raw.json")])
        assert bench.main() == 1
        assert capsys.readouterr().out == said.out

    def test_as_nvbandwidth_is_compared_key_by_key(self, call, documents):
        code, said, raw = call("as", documents[1], documents[1], "--rounds", "3")
        assert code == 0
        assert [record.tool for record in raw.records].index("linkgauge") == 1
        assert "only one of the documents has: none." in said.out
        assert "statuses: alike" in said.out
        assert "so many cells miss it: 0, 0, 0." in said.out

    def test_a_key_more_or_a_test_less_is_told(self, call, documents, tmp_path):
        other = tmp_path / "other"
        other.write_bytes(msgspec.json.encode(theirs(TESTS[1:], extra=1)))
        code, said, _ = call("as", f"print(open({str(other)!r}).read())", documents[1])
        assert code == 3
        assert "only one of the documents has: nvbandwidth.extra." in said.out
        assert "statuses: not alike" in said.out

    def test_a_spent_budget_starts_no_round(self, call, documents):
        code, said, raw = call("host", *documents, "--budget", "0")
        assert (code, raw.records) == (3, ())
        assert "0 of 5 rounds were started" in said.out

    def test_a_crash_and_a_missing_document_cost_one_run_each(self, call, documents):
        crash = "import sys; print('device lost', file=sys.stderr); sys.exit(9)"
        code, said, raw = call("host", documents[0], crash, "--rounds", "2")
        assert code == 3
        assert [record.exit for record in raw.records] == [0, 9, 0, 9]
        assert "exit status 9: device lost" in said.out

    def test_a_hang_is_stopped(self, call, documents):
        hang = "import time; time.sleep(60)"
        code, said, _ = call("device", documents[0], hang, "--timeout", "1")
        assert code == 3
        assert "stopped after 1 s" in said.out

    def test_a_program_that_is_not_there(self, call, documents, tmp_path):
        code, said, _ = call("device", *documents, "--nvbandwidth", str(tmp_path / "absent"))
        assert code == 3
        assert "No such file" in said.out

    def test_a_cut_run_is_read_from_its_journal(self, tmp_path):
        test = "device_local_copy"
        whole = ours([test])
        fields = ("benchmark", "title", "backend", "size", "unit", "better")
        planned = PlannedSheet(**{name: getattr(whole.results[0], name) for name in fields})
        opened = Opened(id="r", label="l", command=(), started="s", machine=whole.machine,
                        settings=whole.settings, plan=(planned,))  # fmt: skip
        (tmp_path / "gpu").mkdir()
        journal = Journal.begin(tmp_path / "gpu" / bench.JOURNAL_FILE, opened)
        journal.append(Measured(0, whole.results[0].cells[0]))
        journal.close()
        step = schedule("device", 1, False)[0][0]
        document = bench.document_of(step, bench.Finished(-9), tmp_path)
        read = record("linkgauge", "device", document=document).reading()
        assert list(read.figures) == [Key(test, "", "0", "1")]
        assert "the run was cut short" in read.problems
