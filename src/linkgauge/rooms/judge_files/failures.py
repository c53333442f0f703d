"""Classifies failures by a tool's words: wrong data, a failed call, or a skipped test."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from linkgauge.model.errors import OutcomeKind

MOST_WORDS = 160
"""The most characters of a tool's words that are kept."""

FAILED_PATH = re.compile(r"\s*([\w-]{3,60}): fail: (.{1,400}\b(?:wrong|mismatch).{0,200})")
"""What `linkgauge as` writes to stderr of a path with wrong bytes, for any tool."""


class Meaning(NamedTuple):
    status: Literal["fail", "error", "skip"]
    kind: OutcomeKind


_WAIVED = re.compile(r"(?i)\bwaiv(?:ed|ing)\b|\bskipp?(?:ed|ing)?\b")
_OF_DATA = re.compile(
    r"(?i)\bwrong (?:bytes?|data|elements?|results?|values?)\b|\bwrong at byte|#wrong|mis-?compare"
    r"|(?<!version )mis-?match|corrupt|validat|verif|\bpattern\b|out of bounds"
    r"|invalid value when"
    r"|h_errorFlag == 0|unsuccessfully (?:written|wrote)"
)
_OF_CALL = re.compile(
    r"(?i)\b(?:CUDA|NVML|HIP|HSA|CU)_\w|\b(?:cuda|hip)Error|\[(?:cuda|hip)|out of mem"
    r"|\b(?:CUDA|NCCL) (?:error|failure)|\berror - |\bFATAL: |allocation failed"
    r"|not (?:supported|found|available|initiali[sz]ed)|\bno .{0,20}devices?\b|\bASSERT\b"
    r"|(?:cannot|unable|failed) to\b|could ?n[o']t |Completion with error|Failed status"
    r"|time[d ]*out"
)


def meaning_of(said: str) -> Meaning:
    """Classifies a failure. Words about data come first: wrong data often ends in an assertion."""
    if _OF_DATA.search(said):
        return Meaning("fail", "wrong-bytes")
    if _WAIVED.search(said):
        return Meaning("skip", "unsupported")
    return Meaning("error", "call") if _OF_CALL.search(said) else Meaning("fail", "reported")
