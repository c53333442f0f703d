"""Waivers: known and accepted problems of machines, which users list in waivers.yml.

    waivers:
      - {check: link-width, part: "0000:41:*", host: "node1?", accept: ">= 8 lanes",
         owner: ops, reason: wired so by design, until: 2027-06-30}
      - {cell: "host_to_device_memcpy_ce [0, 3]", accept: ">= 40 GB/s", owner: ops,
         reason: known slow slot, until: 2027-06-30}

For a check, `accept` is `warn`, `fail` or a value in the unit that the catalogue of checks gives. A
waived finding waives its low cells. If all cells of a finding are waived, the finding is waived,
too. `until` is the last day on which a waived run may have begun."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from datetime import date
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path

from msgspec.structs import replace

from linkgauge.machine.given import entries_in
from linkgauge.model.cell_id import CellId, cell_id, spoken
from linkgauge.model.documents.expected import Waiver
from linkgauge.model.documents.result import CellResult, Result, Run, Verdict
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint

from .findings import SEVERITIES, Finding
from .limit_bounds import QUANTITY, UNITS, StatisticLimit, parse_bound

_FIELDS = ("check", "cell", "part", "host", "accept", "owner", "reason", "until")
_ALWAYS = ("accept", "owner", "reason", "until")
_OF_CHECKS = {
    "lanes": ("lanes", 1.0), "GT/s": ("GT/s", 1.0), "links": ("links", 1.0), "W": ("W", 1.0),
    "errors": ("errors", 1.0), "MHz": ("MHz", 1.0),
}  # fmt: skip
_SPARED: tuple[Verdict, ...] = ("low", "perhaps low")


def read_waivers(*paths: Path) -> tuple[Waiver, ...]:
    """Reads files of waivers. Raises InputError, which names the faulty line."""
    return tuple(
        _waiver(where, fields)
        for path in paths
        for where, fields in entries_in(path, "waiver", _FIELDS)
    )


def _waiver(where: str, fields: dict[str, str]) -> Waiver:
    if ("check" in fields) == ("cell" in fields):
        raise InputError(f"{where}: give either check, an id, or cell, a pattern")
    if lacking := [name for name in _ALWAYS if name not in fields]:
        raise InputError(f"{where}: missing {lacking[0]}")
    check = fields.setdefault("check", "")
    try:
        date.fromisoformat(fields["until"])
    except ValueError as error:
        raise InputError(f"{where}: until {fields['until']!r}: write 2027-06-30") from error
    if check:
        _refuse_wrong(check, fields["accept"], where)
    elif (bound := bound_of(fields["accept"], where)).of or bound.statistic != "median":
        raise InputError(f"{where}: accept of a cell is a median, such as '>= 40 GB/s'")
    return Waiver(**{"cell": "", **fields}, where=where)


def _refuse_wrong(check: str, accept: str, where: str) -> None:
    from .doctor.catalogue import NOTHING, checks

    known = {one.id: one.unit for one in checks() if one.of == "doctor"}
    if check not in known:
        near = hint(check, known, ": linkgauge doctor --checks lists them")
        raise InputError(f"{where}: no check is called {check!r}{near}")
    unit = known[check]
    if unit == NOTHING:
        raise InputError(f"{where}: {check} cannot be waived: nothing was measured, or wrongly")
    wanted = f"a value in {unit}" if unit else "warn or fail"
    fits = accept in ("warn", "fail")
    if unit:
        fits = accept not in SEVERITIES and bound_of(accept, where).unit == unit
    if not fits:
        raise InputError(f"{where}: accept {accept!r}: of {check}, write {wanted}")


@cache
def bound_of(accept: str, where: str = "") -> StatisticLimit:
    return parse_bound(accept, f"{where}: " if where else "", {**UNITS, **_OF_CHECKS})


def _accepts(one: Waiver, severity: str, value: float | None, unit: str) -> bool:
    if one.accept in SEVERITIES:
        return SEVERITIES.index(one.accept) <= SEVERITIES.index(severity)
    bound = bound_of(one.accept)
    if value is None or bound.unit != unit:
        return False
    return value >= bound.value if bound.at_least else value <= bound.value


class Waiving:
    """Applies a host's waivers to findings and verdicts, and records which waivers were used."""

    def __init__(self, waivers: Iterable[Waiver], host: str, started: str) -> None:
        self._waivers = [one for one in waivers if fnmatchcase(host, one.host)]
        self._day = started[:10]
        self._used: set[Waiver] = set()
        self._why: dict[Waiver, str] = {}

    @classmethod
    def of(cls, run: Run) -> Waiving:
        return cls(run.waivers or (), run.machine.host.hostname, run.started)

    def _covering(
        self, meant: Iterable[Waiver], name: str, severity: str, value: float | None, unit: str
    ) -> Waiver | None:
        found: Waiver | None = None
        for one in meant:
            if one.until < self._day:
                self._why[one] = f"ended on {one.until}, so that {name} counts"
            elif not _accepts(one, severity, value, unit):
                self._why[one] = f"{name} is worse than {one.accept}"
            elif found is not None:
                self._why[one] = f"{name} is covered by {found.where}"
            else:
                found = one
        if found is not None:
            self._used.add(found)
        return found

    def cell(self, result: Result, cell: CellResult) -> CellResult:
        """Waives a cell that is low or misses a limit, if a waiver covers it."""
        misses = cell.status == "fail" and cell.kind == "limit"
        if not misses and not (cell.status == "pass" and cell.verdict in _SPARED):
            return cell
        key, said, parts = cell_id(result, cell), spoken(result, cell), map(str, cell.places)
        if not self.covers(key, cell.headline, result.unit, said, parts):
            return cell
        return replace(cell, status="pass", verdict="waived", reason=None, kind=None)

    def covers(
        self, key: CellId, figure: float | None, unit: str, said: str = "",
        parts: Iterable[str] = (),
    ) -> bool:  # fmt: skip
        """Whether a waiver accepts the figure of cell `key`, called `said`, of memories `parts`."""
        names = [_bare(name) for name in (key.name, said)]
        used = [*parts] or [f"{key.backend}:{place}" for place in key.place]
        meant = (
            one for one in self._waivers
            if one.cell and _is_part(one, used)
            and any(fnmatchcase(name, _bare(one.cell)) for name in names)
        )  # fmt: skip
        found = self._covering(meant, key.name, "fail", figure, QUANTITY.get(unit, unit))
        return found is not None

    def finding(self, one: Finding, waived: Set[str]) -> Finding:
        """Waives a finding if a waiver covers it, or if all of its cells are among the `waived`."""
        if not one.is_grave:
            return one
        meant = [
            waiver for waiver in self._waivers
            if waiver.check == one.check and _is_part(waiver, one.about_names)
        ]  # fmt: skip
        of = one.name, one.severity, one.value or None, _unit(one.check)
        found = self._covering(meant, *of)
        if found is not None:
            return replace(one, severity="waived", waived=found)
        if one.cells and waived >= {*one.cells}:
            return replace(one, severity="waived", why="a waiver accepts all of its cells")
        return one

    def unused(self) -> Iterator[Finding]:
        """Yields a note on each waiver that was not used, which says why it was not."""
        for one in self._waivers:
            if one not in self._used:
                why = self._why.get(one, f"covers nothing: {one.check or one.cell} was not found")
                yield Finding("waiver", "note", one.where, why)


def _bare(name: str) -> str:
    return name.translate({ord("["): None, ord("]"): None})


def _is_part(one: Waiver, names: Iterable[str]) -> bool:
    return one.part == "*" or any(fnmatchcase(name, one.part) for name in names)


@cache
def _unit(check: str) -> str:
    from .doctor.catalogue import checks

    return next((one.unit for one in checks() if one.id == check), "")


def waive_cells(run: Run) -> Run:
    return _waived(run, Waiving.of(run).cell) if run.waivers else run


def waive_named(run: Run, names: Collection[str]) -> Run:
    """Waives the low cells with these names, which are the evidence of waived findings."""

    def waived(result: Result, cell: CellResult) -> CellResult:
        is_waived = cell.verdict in _SPARED and spoken(result, cell) in names
        return replace(cell, verdict="waived") if is_waived else cell

    return _waived(run, waived)


def _waived(run: Run, change: Callable[[Result, CellResult], CellResult]) -> Run:
    results = (one.with_cells(partial(change, one)) for one in run.results)
    return replace(run, results=tuple(results))


def waive_findings(
    run: Run, found: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Returns the findings, some of them waived, and notes on waivers that were not used."""
    waiving, judged = Waiving.of(run), set[str]()
    for result in run.results:
        for cell in result.cells:
            is_waived = cell.verdict == "waived"
            waiving.cell(result, replace(cell, verdict="low") if is_waived else cell)
            judged |= {spoken(result, cell)} if is_waived else set()
    findings = tuple(waiving.finding(one, judged) for one in found)
    return findings, tuple(waiving.unused())
