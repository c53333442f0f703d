"""Reads the diagnosis of DCGM (dcgmi diag -r 3, as text or JSON): the figures of its PCIe test, and
the list of GPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..lines import DECIMAL
from ..products import model_of
from ..told import MIB, Found, TextScan, ToldGpu, copied

_RATE = re.compile(
    r"GPU (\d{1,3})(?::)? (GPU to Host|Host to GPU) bandwidth:"
    rf"(?:\s|\\t){{0,8}}({DECIMAL}) GB/s"
)
_IDS = re.compile(r'"([0-9a-f]{4})"')
_SAID = re.compile(r"dcgm|DCGM|Diagnostic|diagnostic")


def read(lines: Sequence[str]) -> Found | None:
    if not any(_SAID.search(line) for line in lines):
        return None
    seen = TextScan(lines)
    for number, line in enumerate(lines):
        for match in _RATE.finditer(line):
            if rate := float(match[3]):
                own = int(match[1])
                source, to = (None, own) if match[2] == "Host to GPU" else (own, None)
                seen.figures.append(copied(source, to, rate, 512 * MIB))
                seen.used.add(number)
    seen.gpus = _devices(lines)
    return seen.log("DCGM") if seen.figures else seen.facts()


def _devices(lines: Sequence[str]) -> dict[int, ToldGpu]:
    """Returns the listed accelerators, by their PCI device numbers."""
    for number, line in enumerate(lines):
        if re.search(r"(?i)gpu[ _]device[ _]ids", line):
            text = " ".join(lines[number : number + 64])
            listed = _IDS.findall(text.partition("[")[2].partition("]")[0])
            models = [model_of(one) for one in listed]
            return {index: ToldGpu(model) for index, model in enumerate(models) if model}
    return {}
