"""Collectives on the terminal: a line for each size, out of place and in place side by side."""

import csv
import io
import json
import random

import pytest
from msgspec.structs import replace

from collected_kit import measured, model_seconds, unmeasured, with_wrong
from fakes import device, machine
from linkgauge.benchmarks.collectives import COLLECTIVES
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.journal import result_of
from linkgauge.engine.plan import make_plan
from linkgauge.model.busbw import bandwidths
from linkgauge.model.collective import CollectiveChoice
from linkgauge.report.files import json_document, samples_csv
from linkgauge.report.run_text import render_result
from report.samples import RUN
from report.test_output import compare, text_console

DEVICES = tuple(device(number, "cuda", 1 << 38) for number in range(4))
SIZES = (8, 1 << 10, 1 << 20, 1 << 30)


def planned(name, choice=None, sizes=SIZES):
    (row,) = (row for row in COLLECTIVES if row.name == name)
    box = machine(DEVICES)
    choice = choice or CollectiveChoice()
    over = DeviceSet("cuda", box.host.nodes, DEVICES, sizes=sizes, collectives=choice)
    (sheet,) = make_plan([row.lay_out(over)], box, (1,))
    return sheet


def result(name, change=lambda cell, result: result, late=None, **more):
    """As measured, of 120 iterations; from 1 MiB on, one rank may be late."""
    chance = random.Random(name)
    sheet = planned(name, **more)
    cells = []
    for cell in sheet.cells:
        size = cell.transfers[0].bytes_moved(1)
        seconds = model_seconds(cell.operation, size, len(cell.operation.groups(4)[0]))
        wait = seconds / 5 if size > 1 << 10 else 0
        iterations = [
            [seconds * (1 + chance.random() / 10) - (wait if rank == late else 0)
             for _ in range(120)]
            for rank in range(4)
        ]  # fmt: skip
        cells.append(change(cell, measured(cell, seconds, iterations=iterations)))
    return result_of(sheet, cells)


def shown(*results):
    console = text_console(width=100)
    for one in results:
        console.print(render_result(one))
    return console.file.getvalue()


def test_what_is_shown():
    def change(cell, result):
        if (cell.row, cell.column) == ("float sum", "1 GiB"):
            return unmeasured(cell, "error", "while measuring: NCCL: unhandled system error")
        if cell.column == "1 KiB" and cell.operation.in_place:
            return with_wrong(result, 17)
        low = cell.column == "1 MiB" and not cell.operation.in_place
        return replace(result, verdict="low") if low else result

    types = CollectiveChoice(types=("float", "bfloat16"), reductions=("sum", "max"))
    rooted = CollectiveChoice(
        roots=(1, 3), split="MOD 2", aggregated=4, blocking=True, graphed=True, registered="local"
    )
    text = shown(
        result("all_reduce", change, late=2),
        result("reduce_scatter", choice=types, sizes=(1 << 20, 8 << 30)),
        result("broadcast", choice=replace(rooted, split=None), sizes=(1 << 20,)),
        result("alltoall", choice=rooted, sizes=(1 << 20,)),
    )
    compare("collectives.txt", text)
    assert max(map(len, text.splitlines())) <= 82


def test_a_rank_that_is_late_is_named_with_the_wait():
    text = shown(result("all_reduce", late=2))
    (line,) = [line for line in text.splitlines() if "1 MiB" in line and " by " in line]
    assert line.count("2 by ") == 2
    assert " by 1" not in shown(result("all_reduce"))


def test_the_average_is_that_of_all_cells():
    one = result("all_gather")
    rates = [bandwidths(cell).bus for cell in one.cells]
    assert one.average == pytest.approx(sum(rates) / len(rates))
    assert f"average bus bandwidth {one.average / 1e9:.2f} GB/s\n" in shown(one)
    assert all(found.average is None for found in RUN.results)


def test_nothing_measured_has_no_average():
    one = result("all_gather", lambda cell, _: unmeasured(cell, "skip", "no NCCL"))
    assert one.average is None
    assert shown(one) == "all_gather  cuda  8 B to 1 GiB  skip: no NCCL\n"


def test_documents_hold_all_of_it():
    run = replace(RUN, results=(result("all_reduce", late=2, sizes=(1 << 20,)),))
    (told,) = json.loads(json_document(run))["results"]
    assert told["average"] == run.results[0].average
    cell = told["cells"][0]
    assert cell["wrong"] == 0
    assert [len(own["seconds"]) for own in cell["iterations"]] == [120] * 4
    lines = list(csv.DictReader(io.StringIO(samples_csv(run))))
    own = [line for line in lines if line["row"] == "float sum"]
    assert sum(line["transfer"] == "" for line in own) == 1
    assert sum(line["transfer"].startswith("cuda:3 -> cuda:3 by ") for line in own) == 120
    assert {line["unit"] for line in own} == {"s (collective)"}
