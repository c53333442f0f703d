"""Writes a message that asks a host's administrator for changes, the cheapest ones first."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.judge.findings import Finding
from linkgauge.judge.remedies import COMPARE_ON_HOST

from .domain import Domain

_COSTS = (
    ("While the guest runs:", ("steal", "vcpus", "memory", "cell-memory")),
    (
        "Once the guest is shut down and started again:",
        (
            "sockets", "threads", "cells", "cell-vcpus", "cell-distances", "device", "device-node",
            "near-node", "topology-none", "cell-spans", "cell-list", "cell-of-none", "refused",
        ),
    ),
    (
        "On the host, while nothing uses its devices:",
        ("link-speed", "link-width", "target-speed", "silent", "bridge"),
    ),
)  # fmt: skip


def message(findings: Sequence[Finding], domain: Domain | None) -> tuple[str, ...]:
    """Returns the message's lines; none if nothing concerns the host or the domain is another's."""
    if any(one.check == "domain-uuid" for one in findings):
        return ()
    lines = list[str]()
    explained = {("link-speed", one.subject) for one in findings if one.check == "target-speed"}
    grave = [one for one in findings if one.is_grave]
    for cost, checks in _COSTS:
        found = [one for one in grave if one.check in checks]
        found = [one for one in found if (one.check, one.subject) not in explained]
        lines += [cost, *(f"- {one.subject}: {one.found}" for one in found)] if found else []
    if not lines:
        return ()
    name = f" '{domain.name}'" if domain is not None and domain.name.isprintable() else ""
    uuid = f" (UUID {domain.uuid})" if domain is not None and domain.uuid else ""
    asked = f"Please look at the virtual machine{name}{uuid}. Inside it, linkgauge found:"
    return (asked, *lines, "To see the rest and the XML to use:", COMPARE_ON_HOST[-1])
