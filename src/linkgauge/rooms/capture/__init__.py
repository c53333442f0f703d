"""Saves everything that linkgauge reads of a machine in one file."""

from linkgauge.registry import Room

ROOM = Room("capture", commands={"capture": f"{__name__}.command:capture"})
