"""What the package adds to linkgauge. Every start of linkgauge imports this file, so it imports
nothing else: linkgauge loads the check when the doctor looks at a machine."""

from linkgauge.rooms import Room

ROOM = Room("free-memory", checks=("linkgauge_free_memory:check_free_memory",))
