"""What the package adds to linkgauge. Every start of linkgauge imports this file, so it imports
nothing else: linkgauge loads the rows when it lists or measures benchmarks."""

from linkgauge.rooms import Room

ROOM = Room("exchange", benchmarks={"Copies by host threads": "linkgauge_exchange:ROWS"})
