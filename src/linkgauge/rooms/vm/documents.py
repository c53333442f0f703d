"""What the room's command writes."""

from __future__ import annotations

from linkgauge.report.formats import Document

_HERE = "linkgauge.rooms.vm.sections"
DOMAIN = Document("a domain", f"{_HERE}:domain_blocks", {"json": f"{_HERE}:domain_document"})
