"""What a benchmark table is made of: rows, and the fabric they are laid out over.

A row is data: a name, a layout and the transfers of one cell in the transfer notation, with
letters in place of memories. `Row.lay_out(fabric)` gives the Benchmark with all its cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import ClassVar

import msgspec

from linkgauge.model.machine import Device, Node
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Benchmark, Cell, Report
from linkgauge.model.units import BANDWIDTH, Unit

HOST_ROW = "0"
"""Matrices call the host row 0, whatever its node."""


class Fabric(msgspec.Struct, frozen=True):
    """What benchmarks are laid out over: the host's nodes and one backend's selected devices."""

    backend: str
    nodes: tuple[Node, ...]
    devices: tuple[Device, ...] = ()
    reason: str | None = None
    """Why there are no devices."""


class Layout(Enum):
    """Rows × columns of a matrix, and the letters that its notation may use."""

    EACH_DEVICE = auto()
    """1 × N: d is the column's device, h the host node near the device of the same transfer."""
    ALL_DEVICES = auto()
    """1 × N, at least two devices: a transfer with e stands once for every other device."""
    OTHERS = auto()
    """1 × N: as ALL_DEVICES, but one device alone is measured without others."""
    PAIRS = auto()
    """N × N without the diagonal: r is the row's device, c the column's."""
    NODES = auto()
    """Node × node: r is the row's node, c the column's."""


class Row(msgspec.Struct, frozen=True):
    """One benchmark of a table.

    `cell` is the notation of one cell over the layout's letters; `K` in it is the engine's kind.
    `parts` names the matrices of single transfers; `size` is bytes where it has one of its own.
    """

    name: str
    title: str
    layout: Layout
    cell: str
    report: Report = Report.FIRST
    unit: Unit = BANDWIDTH
    parts: tuple[str, ...] = ()
    size: int | None = None

    @property
    def on_host(self) -> bool:
        return self.layout is Layout.NODES

    @property
    def between_devices(self) -> bool:
        return self.layout in (Layout.PAIRS, Layout.ALL_DEVICES)

    def lay_out(self, fabric: Fabric) -> Benchmark:
        """All cells of this row over the fabric, or the reason why there are none."""
        if self.on_host:
            cells = tuple(self._node_cells(fabric.nodes))
            return self._benchmark("host", cells)
        least = 2 if self.between_devices else 1
        if len(fabric.devices) < least:
            reason = f"needs two devices, {fabric.backend} has {len(fabric.devices)} selected"
            return self._benchmark(fabric.backend, (), fabric.reason or reason)
        lay_out = self._pair_cells if self.layout is Layout.PAIRS else self._device_cells
        return self._benchmark(fabric.backend, tuple(lay_out(fabric.devices)))

    def _benchmark(
        self, backend: str, cells: tuple[Cell, ...], reason: str | None = None
    ) -> Benchmark:
        return Benchmark(
            self.name,
            self.title,
            backend,
            cells,
            self.unit,
            self.parts,
            pairs=self.layout is Layout.PAIRS,
            size=self.size,
            reason=reason,
        )

    def _cell(self, row: str, column: str, terms: list[str]) -> Cell:
        return Cell(row, column, parse_transfers(" & ".join(terms)), self.report)

    def _device_cells(self, devices: tuple[Device, ...]) -> Iterator[Cell]:
        for device in devices:
            others = [other for other in devices if other != device]
            terms: list[str] = []
            for term in self.cell.split("&"):
                for other in others if re.search(r"\be\b", term) else [None]:
                    near = (other or device).near
                    places = {"h": f"host:{near}", "d": device.memory}
                    terms.append(_place(term, places | ({"e": other.memory} if other else {})))
            yield self._cell(HOST_ROW, str(device.index), terms)

    def _pair_cells(self, devices: tuple[Device, ...]) -> Iterator[Cell]:
        for row in devices:
            for column in devices:
                if row != column:
                    places = {"r": row.memory, "c": column.memory}
                    yield self._cell(str(row.index), str(column.index), [_place(self.cell, places)])

    def _node_cells(self, nodes: tuple[Node, ...]) -> Iterator[Cell]:
        for row in nodes:
            for column in nodes:
                places = {"r": f"host:{row.index}", "c": f"host:{column.index}"}
                yield self._cell(str(row.index), str(column.index), [_place(self.cell, places)])


class Sweep(msgspec.Struct, frozen=True):
    """A benchmark whose columns are not memories: `cells` computes them from the nodes."""

    name: str
    title: str
    cells: Callable[[tuple[Node, ...]], Iterator[Cell]]
    unit: Unit = BANDWIDTH

    on_host: ClassVar[bool] = True
    between_devices: ClassVar[bool] = False

    def lay_out(self, fabric: Fabric) -> Benchmark:
        cells = tuple(self.cells(fabric.nodes))
        return Benchmark(self.name, self.title, "host", cells, self.unit, sweep=True)


def _place(term: str, places: dict[str, str]) -> str:
    """The term with each letter replaced by the memory it stands for."""
    return re.sub(r"\b[a-z]\b", lambda match: places[match[0]], term)
