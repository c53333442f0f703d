"""`linkgauge vary` as a user types it: on a simulated machine, in few rounds."""

import json

import pytest

from command_kit import called
from linkgauge.cli.main import app
from linkgauge.model.errors import LinkgaugeError
from vary_kit import opening

COPY = "host_to_host_memcpy_copy_cpu"
HALF = ("--machine", "riscv-2gpu", "--cpus", "0-15", "--cpus", "0-7", "--size", "1M")
FEW = ("--rounds", "4", "--significance", "0.2")


def vary(*arguments):
    """The command in this process, workers included: its exit code."""
    with opening():
        return app(["vary", *map(str, arguments)], standalone_mode=False)


def show(*arguments):
    return app(["show", *map(str, arguments)], standalone_mode=False)


def test_settings_are_compared_and_every_run_is_kept(tmp_path, capsys):
    code = vary(COPY, *HALF, "--prepare", "echo on $LINKGAUGE_CPUS", "--label", "mine",
                "--out", tmp_path)  # fmt: skip
    said = capsys.readouterr().out
    assert code == 0
    assert "B  --cpus 0-7  prepared: on 0-7" in said
    assert "B against A: 1 of 1 differ: 0 better, 1 worse" in said
    machine = tmp_path / "simulated-riscv-2gpu"
    folders = {path.name: len(list(path.iterdir())) for path in machine.iterdir()}
    assert folders == {"mine": 1, "mine-cpus-0-15": 10, "mine-cpus-0-7": 10}

    (folder,) = (machine / "mine").iterdir()
    assert show(folder) == 0
    assert capsys.readouterr().out == said[: said.index("results: ")]
    assert show(folder, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], len(document["runs"])) == ("linkgauge.vary/1", 20)
    for kept in document["runs"]:
        assert show(kept["folder"]) == 0
    assert capsys.readouterr().out.count(f"\n{COPY}  ") == 20


def test_transfers_are_compared_as_benchmarks_are(tmp_path, capsys):
    text = "host:0 -> host:0 by cpu & host:0 -> null by cpu"
    memory = ("--memory", "pinned", "--memory", "pageable", "--memory", "pinned")
    assert vary(text, *HALF[:2], *memory, *FEW, "--size", "1M", "--out", tmp_path, "--json") == 0
    shown = capsys.readouterr()
    (cell,) = json.loads(shown.out)["cells"]
    assert [one["direction"] for one in cell["settings"]][::2] == ["unknown", "same"]
    assert "results: " in shown.err


def test_wrong_bytes_and_nothing_measured_have_their_exit_codes(tmp_path, capsys):
    assert vary(COPY, *HALF, *FEW, "--fault", "flip * offset=7", "--out", tmp_path) == 1
    assert "is wrong at byte 7 of 1048576" in capsys.readouterr().out
    nowhere = ("--memory", "thp", "--memory", "hugetlb")
    assert vary(COPY, *HALF[:2], *nowhere, *FEW, "--out", tmp_path) == 4
    assert "B against A: nothing compared" in capsys.readouterr().out


def test_where_nothing_can_be_compared_one_round_is_enough(tmp_path, capsys):
    assert vary(COPY, *HALF[:2], "--memory", "pinned", "--memory", "thp", "--out", tmp_path) == 4
    said = capsys.readouterr().out
    assert "2 settings, 1 round of a run each" in said
    assert "B against A: nothing compared: skip: no thp memory here" in said
    assert "ended after one round: no cell has figures under A and another setting" in said
    (path,) = tmp_path.rglob("vary.json")
    document = json.loads(path.read_text())
    assert (len(document["runs"]), document["rounds"]) == (2, 10)
    assert document["finished"] is not None


def test_ctrl_c_keeps_what_was_measured(tmp_path):
    strike = "test $LINKGAUGE_ROUND$LINKGAUGE_SETTING != 2A || { kill -INT $PPID; sleep 9; }"
    done = called("vary", COPY, *HALF, *FEW, "--prepare", strike, "--out", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (130, False)
    assert "1 round of a run each, in random order (ended before all 4)" in done.stdout
    assert "too few rounds (1)" in done.stdout
    (path,) = tmp_path.rglob("vary.json")
    assert json.loads(path.read_text())["finished"] is None


def test_a_command_that_fails_before_the_first_run_leaves_nothing(tmp_path, capsys):
    with pytest.raises(LinkgaugeError, match=r"--prepare failed .* round 1 \(exit code 4\): no$"):
        vary(COPY, *HALF, "--prepare", "echo no; exit 4", "--out", tmp_path)
    assert (capsys.readouterr().out, list(tmp_path.iterdir())) == ("", [])


def test_one_that_fails_later_leaves_what_was_measured(tmp_path, capsys):
    with pytest.raises(LinkgaugeError, match="round 3"):
        vary(COPY, *HALF, *FEW, "--prepare", "test $LINKGAUGE_ROUND != 3", "--out", tmp_path)
    assert "2 settings, 2 rounds of a run each" in capsys.readouterr().out
