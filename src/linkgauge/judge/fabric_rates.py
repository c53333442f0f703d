"""Rates of the accelerators' own links: NVLink and the like."""

from __future__ import annotations

from linkgauge.model.link_bundles import LinkBundle, coding

from .path import ExpectedPath, Unknown, Use, figure

PACKET = 16 / 18
"""Payload share of an NVLink: a packet of 256 bytes is 16 flits of 16 bytes after a header and an
address flit. Source: D. Foley and J. Danskin, Ultra-Performance Pascal GPU and NVLink Interconnect,
IEEE Micro 37 (2017). Two H200s reach 0.98 to 0.99 of it by copy engine and 0.93 by kernel."""


def fabric_path(ends: tuple[str, str], bundle: LinkBundle, part: float) -> ExpectedPath:
    """The path over parallel links that join these two, in this order. Raises Unknown."""
    if not bundle.count:
        raise Unknown(f"no {bundle.kind} of {' to '.join(ends)} is active")
    if not bundle.rate:
        raise Unknown(f"the rate of {bundle.kind} is unknown")
    segment = ">".join(ends), bundle.rate, _shown(bundle)
    if bundle.is_nvlink:
        return ExpectedPath((Use(*segment, part, part / PACKET, "packets of 16 in 18 flits"),))
    why = f"the overhead of {bundle.kind} packets is unknown"
    return ExpectedPath((Use(*segment, part, part, why),), loose=(why,))


def _shown(bundle: LinkBundle) -> str:
    share = coding(bundle.each)
    coded = "" if share == 1 else f" × {share:.4g}"
    of = "" if bundle.count == bundle.all else f" of {bundle.all}"
    return f"{bundle.count}{of} {bundle.kind} × {figure(bundle.each)}{coded}"
