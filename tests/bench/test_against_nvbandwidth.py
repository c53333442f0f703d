"""The comparison with nvbandwidth, over fabricated documents and stand-ins for both programs."""

import shlex
import sys
import textwrap

import msgspec
import pytest

import against_nvbandwidth as bench
from linkgauge.engine.journal import Journal, Measured, Opened
from linkgauge.model.notation import encode_hook
from linkgauge.model.result import PlannedCell, PlannedSheet
from nvbandwidth_document import exit_status, make_sections, problems_of, render
from nvbandwidth_figures import TESTS, Key
from nvbandwidth_kit import campaign, ours, record, theirs, whole
from nvbandwidth_plan import Campaign, schedule, tools_of


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
            (tmp_path / name).write_bytes(msgspec.json.encode(data, enc_hook=encode_hook))
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
        assert [record.tool for record in raw.records[:2]] == [*tools_of("as")]
        assert "only one of the documents has: none." in said.out
        assert "statuses: alike" in said.out
        assert "linkgauge 0, 0, 0; nvbandwidth 0, 0, 0." in said.out

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
        cell = whole.results[0].cells[0]
        cells = (PlannedCell(cell.row, cell.column, cell.transfers, cell.report),)
        shown = {name: getattr(whole.results[0], name) for name in fields}
        planned = PlannedSheet(**shown, cells=cells)
        opened = Opened(id="r", label="l", command=(), started="s", machine=whole.machine,
                        settings=whole.settings, plan=(planned,))  # fmt: skip
        (tmp_path / "gpu").mkdir()
        journal = Journal.begin(tmp_path / "gpu" / bench.JOURNAL_FILE, opened)
        journal.append(Measured(0, cell))
        journal.close()
        step = schedule("device", 1, False)[0][0]
        document = bench.document_of(step, bench.Finished(-9), tmp_path)
        read = record("linkgauge", "device", document=document).reading()
        assert list(read.figures) == [Key(test, "", "0", "1")]
        assert "the run was cut short" in read.problems
