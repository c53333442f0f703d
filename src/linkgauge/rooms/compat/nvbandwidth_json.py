"""nvbandwidth's JSON: its keys, and the layout of the library that it uses (jsoncpp)."""

from __future__ import annotations

import json

from .nvbandwidth_figures import Outcome, TestMatrix
from .nvbandwidth_system import Located, System

Value = dict[str, "Value"] | list["Value"] | str | int | float


class JsonPrinter:
    """Prints one document at the end. A test that is missing has the status Not Found."""

    def __init__(self, root: str, version: str, git_version: str, *, verbose: bool) -> None:
        self._root = root
        self._verbose = verbose
        self._content: dict[str, Value] = {"git_version": git_version, "version": version}
        self._tests: list[Value] = []

    def warn(self, text: str) -> None:
        self._content["warning"] = text

    def system(self, system: System) -> None:
        self._content["CUDA Runtime Version"] = system.cuda
        self._content["Driver Version"] = system.driver
        self._content["GPU Device list"] = [_listed(device) for device in system.devices]

    def missing(self, asked: str, problem: str) -> None:
        self._tests.append({"name": asked, "status": "Not Found", "error": problem})

    def show(self, outcome: Outcome) -> None:
        test: dict[str, Value] = {"name": outcome.name, "status": outcome.status}
        if outcome.reasons:
            key = "reason" if outcome.status == "Waived" else "error"
            test[key] = "; ".join(outcome.reasons)
        if outcome.matrices:
            test["bandwidth_matrix"] = [row for m in outcome.matrices for row in _rows(m)]
            last = outcome.matrices[-1]  # if there are several, the total
            figures = last.known
            test |= {"bandwidth_description": last.heading, "sum": sum(figures)}
            if self._verbose:
                mean = sum(figures) / len(figures)
                test |= {"min": min(figures), "max": max(figures), "average": mean}
        if outcome.shares is not None:
            test["utilization_ratio_matrix"] = list(_rows(outcome.shares))
        self._tests.append(test)

    def fail(self, message: str) -> None:
        self._content["error"] = message
        if self._tests:
            self._content["testcases"] = self._tests
        self._print()

    def end(self) -> None:
        self._content["testcases"] = self._tests  # a list, even if Ctrl-C leaves it empty
        self._print()

    def _print(self) -> None:
        print(styled({self._root: self._content}), end="\n\n", flush=True)


def _listed(device: Located) -> str:
    """With the number of the process that measures it, if there are several, in place of its
    index, which another host's device may have, too."""
    number = device.index if device.process is None else device.process
    at = "" if device.hostname is None else f": ({device.hostname})"
    return f"{number}: {device.name}{at}"


def _rows(matrix: TestMatrix) -> list[Value]:
    """Figures as C++ streams write them: six significant digits."""
    return [
        ["N/A" if figure is None else f"{figure:g}" for figure in row] for row in matrix.figures
    ]


def styled(value: Value, indent: str = "") -> str:
    """A document as jsoncpp's styled writer lays it out: sorted keys, tabs, 17 digits."""
    inner = indent + "\t"
    if isinstance(value, dict) and value:
        members = (
            f"{inner}{json.dumps(key)} : {_member(value[key], inner)}" for key in sorted(value)
        )
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        items = (inner + styled(item, inner) for item in value)
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    if isinstance(value, float):
        digits = f"{value:.17g}"
        return digits if set(digits) & set(".en") else f"{digits}.0"
    return json.dumps(value)


def _member(value: Value, indent: str) -> str:
    """The text after a key: a value of several lines begins on the next."""
    text = styled(value, indent)
    return f"\n{indent}{text}" if "\n" in text else text
