"""`linkgauge scale` as a user types it, on simulated machines."""

import csv
import io
import json

import pytest

from linkgauge.model.errors import InputError
from report.test_output import compare as as_golden
from scale_kit import scale

QUICK = ("--samples", "3")
FEW = (*QUICK, "--size", "8,64K,512M")
SLOW = ("--fault", "slow sim:2-sim:3 rate=50%")


def shown(text):
    """The report, without the path of the results."""
    return text[: text.index("results: ")]


def test_the_report_of_two_islands(tmp_path, capsys):
    assert scale("all_reduce", "--machine", "islands-2x4", *QUICK, "--out", tmp_path) == 0
    as_golden("scale.txt", shown(capsys.readouterr().out))
    (path,) = tmp_path.rglob("run.json")
    run = json.loads(path.read_text())
    assert [result["benchmark"] for result in run["results"]] == ["all_reduce"] * 4
    titles = [result["title"] for result in run["results"]]
    assert [title.rpartition(", ")[2] for title in titles] == [
        "1 GPU", "2 GPUs", "4 GPUs", "8 GPUs"
    ]  # fmt: skip
    assert {cell["row"] for result in run["results"] for cell in result["cells"]} == {
        "float sum, 1 GPU", "float sum, 2 GPUs", "float sum, 4 GPUs", "float sum, 8 GPUs"
    }  # fmt: skip
    assert [cell["column"] for cell in run["results"][0]["cells"]][:2] == ["8 B", "32 B"]
    assert path.with_name("scale.json").exists()


@pytest.mark.parametrize(
    ("faults", "code", "verdict", "tally"),
    [
        ((), 0, "ok: all 2 numbers of GPUs reach the expected busbw",
         "6 measured: of 2 numbers of GPUs, 2 ok, 0 low"),
        (("--fault", "slow sim:2-sim:3 rate=50%"), 1, None,
         "of 2 numbers of GPUs, 1 ok, 1 low"),
    ],
)  # fmt: skip
def test_the_verdict_is_on_the_expected_figures_that_are_shown(
    faults, code, verdict, tally, tmp_path, capsys
):
    assert scale("all_reduce", "--gpus", "2,4", "--machine", "full-8", *faults, *FEW,
                 "--out", tmp_path) == code  # fmt: skip
    said = capsys.readouterr().out
    assert tally in said
    assert "not judged" not in said
    if verdict is not None:
        assert f"verdict:   {verdict}" in said
    for line in said.splitlines()[2:4]:
        _, _, busbw, expected, _, share, *_ = line.split()
        of_expected = 100 * float(busbw) / float(expected)
        assert float(share.rstrip("%")) == pytest.approx(of_expected, abs=1)


def test_numbers_of_gpus_that_have_no_reference_are_not_judged(tmp_path, capsys):
    """Of one GPU nothing is expected: that is not ok."""
    assert scale("--gpus", "1", "--machine", "full-8", *FEW, "--out", tmp_path) == 0
    assert "verdict:   not judged: no number of GPUs has a reference" in capsys.readouterr().out


def test_a_slow_link_is_found_and_fails(tmp_path, capsys):
    code = scale("all_reduce", "--gpus", "2,4", "--machine", "full-8", *SLOW, *FEW,
                 "--out", tmp_path)  # fmt: skip
    said = capsys.readouterr()
    assert code == 1
    assert "knee at 4 GPUs: 50% of the busbw of 2: also slow alone: sim:2 -> sim:3" in said.out
    (line,) = [line for line in said.out.splitlines() if line.endswith("slow link")]
    assert line.startswith("  sim:2 -> sim:3 alone: 2")
    assert "measuring 4 pairs of devices alone" in said.err
    assert "SIMULATED" in said.out
    assert "struck nothing" not in said.out
    (path,) = tmp_path.rglob("run.json")
    results = json.loads(path.read_text())["results"]
    assert results[-1]["benchmark"] == "device_to_device_memcpy_write_sm"


def test_nodes_of_a_cluster_are_counted_as_such(tmp_path, capsys):
    """Each by the device of its first rail; the slow one is found where it comes in."""
    code = scale("all_reduce", "--nodes", "1,2,4", "--machine", "fat-tree-64", "--fault",
                 "slow sim:3 rate=50%", *FEW, "--out", tmp_path)  # fmt: skip
    said = capsys.readouterr().out
    assert code == 1
    assert "knee at 4 nodes: 50% of the busbw of 2: also slow alone: sim:2 -> sim:3" in said
    assert "GPU" not in said[: said.index("verdict:")]
    (path,) = tmp_path.rglob("scale.json")
    document = json.loads(path.read_text())
    assert document["member"] == "node"
    assert document["devices"] == ["sim:0", "sim:1", "sim:2", "sim:3"]


def test_the_document_on_stdout_follows_its_schema(tmp_path, capsys):
    assert scale("--machine", "ring-8", *FEW, "--out", tmp_path, "--json") == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert [count["gpus"] for count in document["counts"]] == [1, 2, 4, 8]
    assert document["knee"] is None
    assert document["simulated"]
    assert "results: " in said.err
    (kept,) = tmp_path.rglob("scale.json")
    assert json.loads(kept.read_text()) == document


def test_csv_has_a_line_for_each_count_and_size(tmp_path, capsys):
    args = ("alltoall", "--gpus", "8,2", "--machine", "full-8")
    assert scale(*args, *FEW, "--out", tmp_path, "--csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["gpus"], row["size"]) for row in rows] == [
        (gpus, size) for gpus in ("2", "8") for size in ("8", "65536", str(512 << 20))
    ]
    assert {row["simulated"] for row in rows} == {"SIMULATED"}
    assert float(rows[2]["busbw"]) == pytest.approx(42e9, rel=0.02)


def test_one_gpu_has_no_bus(tmp_path, capsys):
    assert scale("--gpus", "1", "--machine", "full-8", *FEW, "--out", tmp_path) == 0
    assert "one GPU shares no link" in capsys.readouterr().out


def test_default_sizes_fit_into_memory(tmp_path, capsys):
    small = tmp_path / "small.yml"
    from linkgauge.backends.sim.description import load

    small.write_text(load("full-8")[1].replace("memory: 80G", "memory: 256M"))
    args = ("--gpus", "2", "--machine", small, *QUICK)
    assert scale(*args, "--out", tmp_path / "out", "--json") == 0
    (count,) = json.loads(capsys.readouterr().out)["counts"]
    assert (count["points"][0]["size"], count["points"][-1]["size"]) == (8, 32 << 20)


def test_wrong_numbers_fail(tmp_path, capsys):
    args = ("--gpus", "2", "--machine", "full-8", "--fault", "flip sim:1 bit=6")
    assert scale(*args, *FEW, "--out", tmp_path) == 1
    assert "fail: float sum, 2 GPUs, 8 B: 1 element is wrong, first element 0 of rank 1" in (
        capsys.readouterr().out
    )


def test_ctrl_c_keeps_what_was_measured(tmp_path, capsys, monkeypatch):
    left = iter(range(5))

    def finished(self, cell):
        if next(left, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr("linkgauge.report.scale_live.LiveScaling.finished", finished)
    code = scale("--machine", "full-8", "--gpus", "2,4", *FEW, "--out", tmp_path)
    assert code == 130
    said = capsys.readouterr().out
    assert "(interrupted)" in said
    (path,) = tmp_path.rglob("run.json")
    assert json.loads(path.read_text())["finished"] is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("all_reduces",), "unknown collective 'all_reduces', did you mean 'all_reduce'?"),
        (("--gpus", "0,2"), "--gpus 0,2: give 1 or more"),
        (("--gpus", "two"), "--gpus two: give numbers of devices, such as 1,2,4,8"),
        (("--gpus", "16"), "--gpus 16 is too many: sim has 8"),
        (("--nodes", "two"), "--nodes two: give numbers of nodes, such as 1,2,4,8"),
        (("--nodes", "2"), "--nodes: sim: no device stands for a node"),
        (("--nodes", "2", "--gpus", "2"), "--gpus and --nodes exclude each other"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        scale(*arguments, "--machine", "full-8", "--out", tmp_path)


def test_names_are_completed():
    from linkgauge.cli.scale import _complete_collective

    assert _complete_collective("all_") == ["all_reduce", "all_gather"]
