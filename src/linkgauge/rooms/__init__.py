"""Optional features (rooms), each in its own folder. A room imports only public names of the core,
and nothing from another room, so each room can be read alone. `ROOM` in a room lists what the room
adds."""

from linkgauge.registry import Room

__all__ = ["Room"]
