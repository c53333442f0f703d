"""Exports metrics for Prometheus: the last results of each label, and the devices' current
state."""

from linkgauge.registry import Room

ROOM = Room("exporter", commands={"exporter": f"{__name__}.command:exporter"})
