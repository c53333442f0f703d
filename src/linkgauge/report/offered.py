"""What rooms offer to the report, which imports none of them: whoever knows rooms says it here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

SECTIONS: list[Callable[[], Iterable[str]]] = []
"""Each finds sections, `MODULE:SECTION`, when a page is made."""
