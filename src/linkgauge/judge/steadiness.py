"""Samples that stand out, and samples that scatter: cells that are less steady than their peers."""

from __future__ import annotations

from .scatter import check_scatter
from .stalls import check_stalls

CHECKS = (check_stalls, check_scatter)
