"""Figures that readers found in texts, by the names that lists of right readings have."""


def named(one, ranks):
    """The figure's name in readings.yml, and its value in GB/s or ns."""
    if one.work is not None:
        kind = " ".join(filter(None, (one.work.type, one.work.reduction)))
        place = " in place" if one.work.in_place else ""
        moved = one.work.bytes_on_bus(one.size, ranks)
        return f"{one.benchmark} {kind}{place}|{one.size}", moved / one.figure / 1e9
    is_time = one.host is not None and one.host.report.is_latency
    part = "" if one.part is None else f" part {one.part}"
    if one.host is not None and "@" in one.host.work:  # between hosts, by size
        part = f"|{one.size}"
    return f"{one.benchmark} {one.row} {one.column}{part}", one.figure * (1e9 if is_time else 1e-9)
