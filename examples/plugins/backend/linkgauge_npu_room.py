"""What the package adds to linkgauge. Every start of linkgauge imports this file, so it imports
nothing else: linkgauge loads the backend when it is asked for."""

from linkgauge.rooms import Room

ROOM = Room("npu", backends={"npu": "linkgauge_npu:create"})
