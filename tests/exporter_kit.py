"""What tests of the exporter share: metrics as a parser of Prometheus' own client reads them, and
machines to look at."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from fake_nvml import FakeNvml
from linkgauge.machine.tree import Captured
from linkgauge.model.documents.history import Figure, PastRun
from linkgauge.rooms.exporter.machine import ThisMachine
from linkgauge.rooms.exporter.results import Results
from linkgauge.rooms.exporter.server import MetricsPage
from pci_kit import CARD, PORT, config

PATIENT = 10.0
"""Seconds: a loaded machine is slow, not wrong."""


class Fixed:
    """A source of results that are given."""

    period = 0.0

    def __init__(self, results=None):
        self.results = results or Results()

    def read(self):
        return self.results


def families(text):
    """By name, as text. Raises where the text is not of Prometheus."""
    return {one.name: one for one in text_string_to_metric_families(text.decode())}


def samples(text, name):
    """(labels, value) of each sample of this name."""
    return [
        (sample.labels, sample.value)
        for family in families(text).values()
        for sample in family.samples
        if sample.name == name
    ]


def value(text, name, **labels):
    """That of the only sample with these labels; None if there is none."""
    found = [
        value
        for own, value in samples(text, name)
        if all(own[label] == wanted for label, wanted in labels.items())
    ]
    assert len(found) <= 1, f"{name} has several samples with {labels}"
    return found[0] if found else None


def tree(hostname="box", width=16, errors=0):
    """A host with a GPU below a port, as files."""
    files = {"proc/sys/kernel/hostname": f"{hostname}\n".encode()}
    links = {}
    for folder, code, port in ((PORT, 0x060400, 4), (CARD, 0x030200, 0)):
        address = folder.rpartition("/")[2]
        own = f"sys/devices/{folder}"
        files[f"{own}/class"] = f"0x{code:06x}\n".encode()
        files[f"{own}/vendor"] = b"0x10de\n"
        files[f"{own}/config"] = config(class_code=code, port=port, width=width)
        files[f"{own}/aer_dev_correctable"] = f"RxErr 0\nTOTAL_ERR_COR {errors}\n".encode()
        links[f"sys/bus/pci/devices/{address}"] = f"/{own}"
    return Captured(files, links)


@contextmanager
def nvml(**answers):
    """The binding of NVML, as a fake."""
    with pytest.MonkeyPatch.context() as patch:
        library = FakeNvml(**answers)
        patch.setitem(sys.modules, "pynvml", library)
        yield library


def page(results=None, period=0.0, said=None, root=None, source=None):
    """The page of a host with GPUs."""
    say = (lambda line: None) if said is None else said.append
    return MetricsPage(ThisMachine(period, say, root or tree()), source or Fixed(results), say)


@contextmanager
def exporting(*options, **environment):
    """A running exporter, and the first line that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", "exporter", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        yield process, process.stderr.readline()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def program(name):
    """The path of one of Debian's package `prometheus`. Skips where it is not installed."""
    found = shutil.which(name)
    if found is None:
        if "prometheus" in os.environ.get("LINKGAUGE_REQUIRE", ""):
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed (Debian: prometheus)")
    return found


RUN = PastRun(
    number=1, id="r1", label="nightly", host="box", simulated=False, accelerators="NVIDIA H200",
    profile="quick", profiled=False, started="2001-09-09T01:46:40Z",
    finished="2001-09-09T01:47:40Z", status="pass", verdict="low", cells=1, passed=1, low=0,
    path=None, setup="", state=1, machine=1,
)  # fmt: skip
CELL = Figure(
    "host_to_device_memcpy_ce", "cuda", 64, "0", "1", unit="B/s", better="higher", status="pass",
    verdict="ok", figure=50e9, expected=55e9, nominal=58e9,
)  # fmt: skip
CHASE = replace(CELL, benchmark="latency", unit="s", figure=600e-9)
LOW = replace(CELL, column="2", verdict="low", figure=20e9)
RESULTS = Results((RUN,), tuple((RUN, cell) for cell in (CELL, LOW, CHASE)))
"""A run with a bandwidth, one that is low, and a latency."""
