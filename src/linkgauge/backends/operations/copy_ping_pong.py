"""Copies there and back by a copy engine, each waited for by the host."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.backends.offering import Offering
from linkgauge.backends.protocol import Copy, Group
from linkgauge.backends.rules import check_copy_engine
from linkgauge.model.operations.operation import Operation


def prepare(on: Offering, copies: Sequence[Copy], does: Operation) -> Group:
    """Copies after the first load the link."""
    first, *loads = copies
    return on.beside(on.returning(check_copy_engine(first)), loads)
