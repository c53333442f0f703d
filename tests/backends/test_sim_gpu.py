"""Products and arrays of simulated devices: as fast as described, slowed and spoilt by faults."""

import pytest

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.worker import LocalWorker
from sim_kit import MACHINE, settings

WITH_PRODUCTS = MACHINE.replace(
    "memory_rate: 1 TB/s}", "memory_rate: 1 TB/s, products: {fp32: 50 TFLOP/s, bf16: 0.4 PFLOP/s}}"
)


def cells(name, *faults, machine=WITH_PRODUCTS, size=1 << 26):
    """The results of one benchmark's cells, by place."""
    how = settings(*faults, machine=machine)
    worker = LocalWorker(how)
    here = worker.survey(["sim"])
    benchmarks = lay_out([CATALOG[name]], fabrics(here, ()), here.host.nodes)
    (sheet,) = make_plan(benchmarks, here, (size,))
    found = [worker.measure((cell,), sheet.size)[0] for cell in sheet.cells]
    return {(cell.row, cell.column): cell for cell in found}


def figure(cell):
    return cell.samples[0]


def test_products_are_as_fast_as_described():
    found = cells("gpu_matmul")
    assert figure(found["FP32", "0"]) == pytest.approx(50e12)
    assert figure(found["BF16", "3"]) == pytest.approx(400e12)
    assert {cell.status for place, cell in found.items() if place[0] in ("FP32", "BF16")} == {
        "pass"
    }


def test_a_type_that_is_not_described_is_skipped_with_the_reason():
    found = cells("gpu_matmul")["TF32", "1"]
    reason = "the description does not say how fast sim:1 multiplies TF32 matrices"
    assert (found.status, found.reason) == ("skip", reason)


@pytest.mark.parametrize("kind", ["read", "write", "copy", "triad"])
def test_each_array_takes_the_memory_once(kind):
    for cell in cells(f"device_memory_{kind}", size=1 << 28).values():
        assert (cell.status, cell.verified) == ("pass", True)
        assert figure(cell) == pytest.approx(1e12, rel=0.02)  # but for what a kernel takes to start


@pytest.mark.parametrize("kind", ["write", "copy", "triad"])
def test_a_flipped_bit_fails_an_operation_where_it_is(kind):
    found = cells(f"device_memory_{kind}", "flip sim:1 offset=70000 bit=3")
    assert found["0", "1"].status == "fail"
    assert "sim:1 is wrong at byte 70000" in found["0", "1"].reason
    assert found["0", "0"].status == "pass"
