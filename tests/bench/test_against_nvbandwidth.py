"""The comparison with nvbandwidth, over fabricated documents and stand-ins for both programs."""

import shlex
import sys
import textwrap

import msgspec
import pytest

import against_nvbandwidth as bench
from linkgauge.model.notation import encode_hook
from nvbandwidth_kit import ours, theirs
from nvbandwidth_plan import Campaign, tools_of


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

    def test_a_crash_and_a_missing_document_cost_one_run_each(self, call, documents):
        crash = "import sys; print('device lost', file=sys.stderr); sys.exit(9)"
        code, said, raw = call("host", documents[0], crash, "--rounds", "2")
        assert code == 3
        assert [record.exit for record in raw.records] == [0, 9, 0, 9]
        assert "exit status 9: device lost" in said.out
