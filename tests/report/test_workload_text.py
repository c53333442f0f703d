"""What is said of AI workloads below their figures."""

from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import TOKENS
from linkgauge.model.workload import Demands, Rates, Share, Stage, WorkDone, Workload
from linkgauge.report.remarks import below_lines
from linkgauge.report.run_text import render_result
from linkgauge.report.workload_text import workload_lines
from report.test_output import text_console

RATES = Rates(100e12, 1e12, 50e9, 50e9)


def stage(name, *milliseconds):
    seconds = tuple(one * 1e-3 for one in milliseconds)
    return Stage(name, seconds, summarize(seconds, "lower"))


def cell(row, column, work, done):
    return CellResult(
        row, column, parse_transfers("null -> null by torch:cuda:0.sm"), Report.RATE, "pass",
        operation="workload", workload=work, work=done, samples=(10.0,), summary=summarize((10.0,)),
    )  # fmt: skip


def decode(batch, share, **more):
    done = WorkDone(
        0.01, 10**9, Demands(memory_bytes=share * 0.01 * 1e12), RATES, ("CUDA graphs",),
        (stage("between tokens", 1.0, 2.0, 3.0),), **more,
    )  # fmt: skip
    return cell("decode bf16", str(batch), Workload("decode", batch=batch), done)


def result(*cells):
    return Result(
        benchmark="ai_inference", title="inference", backend="torch", size=0,
        unit=TOKENS.symbol, better="higher", status="pass", cells=cells, sweep=True,
    )  # fmt: skip


def said(*cells):
    return [str(line) for line in workload_lines(result(*cells))]


def test_neighbours_that_the_same_bounds_are_said_at_once_with_what_would_change_it():
    lines = said(decode(1, 0.9), decode(2, 0.8), decode(64, 0.2))
    assert lines[0] == (
        "decode bf16 bounded by memory at 1 to 2 (80% to 90% of the time), "
        "no part alone at 64 (20% of the time)"
    )
    assert lines[1].startswith("memory: a larger batch")
    assert lines[-1] == "(decode bf16, 1) and 2 more: CUDA graphs"


def test_a_training_step_shows_its_parts_and_what_its_collectives_cost():
    parts = (stage("input", 1.0), stage("forward", 4.0), stage("backward", 5.0))
    done = WorkDone(
        0.01, 1, Demands(operations=0.6e12), RATES, ("2 ranks by NCCL",), parts,
        split_error=0.004, communication=0.003, exposed=0.001,
    )  # fmt: skip
    (line,) = (
        line
        for line in said(cell("overlap", "2", Workload("training", ranks=2), done))
        if "forward" in line
    )
    assert "input 1 ms (10%), forward 4 ms (40%), backward 5 ms (50%)" in line
    assert "within 0.4% of the step" in line
    assert "communication alone 3 ms (30%), exposed 1 ms" in line


def test_a_trace_shows_the_shares_of_its_time_and_where_it_lies():
    shares = (Share("products", 0.7), Share("copies", 0.3))
    assert any(
        "products 70%, copies 30% (/t/decode.json)" in line
        for line in said(decode(1, 0.9, shares=shares, trace="/t/decode.json"))
    )


def test_how_busy_the_link_and_the_device_are():
    lines = said(decode(1, 0.9, link_use=0.95, device_use=0.4))
    assert any(line.endswith("link 95% busy, device 40%") for line in lines)


def test_percentiles_of_tokens_stand_below_the_figures():
    console = text_console(width=100)
    console.print(render_result(result(decode(1, 0.9))))
    text = console.file.getvalue()
    assert "rate (tokens/s)" in text
    at = text.index("between tokens, p50 (ms)")
    assert "2.00" in text[at:]
    assert "first token" not in text


def test_the_summary_of_a_run_says_what_bounds_it_too():
    lines = [str(line) for line in below_lines([result(decode(1, 0.9))], whole=False)]
    assert "decode bf16 bounded by memory at 1 (90% of the time)" in lines
    assert not any("CUDA graphs" in line for line in lines if line.startswith("(decode"))
