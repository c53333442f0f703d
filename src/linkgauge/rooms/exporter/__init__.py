"""Exports metrics for Prometheus: the latest results of each label, and the current state of
devices."""

from linkgauge.registry import Room

ROOM = Room("exporter", commands={"exporter": f"{__name__}.command:exporter"})
