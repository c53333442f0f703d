"""Whether a machine is the domain's guest or its host, by what its files tell."""

from __future__ import annotations

import msgspec

from linkgauge.model.domain import Domain, Role
from linkgauge.model.machine import Machine
from linkgauge.model.virtual import RunningDomain, Virtual

from .comparison import is_same_uuid


class Decision(msgspec.Struct, frozen=True):
    """`role` is null if nothing tells; `reasons` are what it rests on, in words."""

    role: Role | None
    reasons: tuple[str, ...]


def decide(
    machine: Machine,
    virtual: Virtual,
    domain: Domain | None = None,
    uuid: str | None = None,
    alive: RunningDomain | None = None,
) -> Decision:
    """The surest evidence first: a domain that runs here makes a host also of a virtual machine
    (nested), and the domain's own UUID in the firmware makes a guest of what hides its
    hypervisor."""
    if alive is not None:
        return Decision("host", (f"the domain runs here (control group of {alive.name!r})",))
    if domain is not None and uuid and domain.uuid and is_same_uuid(uuid, domain.uuid):
        return Decision("guest", ("the firmware has the domain's UUID",))
    host = machine.known.host
    unread = {field for gap in host.unknown for field in gap.fields}
    if host.hypervisor is None and "hypervisor" in unread:
        return Decision(None, virtual.signs)
    if host.hypervisor is not None:
        return Decision("guest", (f"it runs under {host.hypervisor}", *virtual.signs))
    return Decision("host", virtual.signs)


def stated(role: Role) -> Decision:
    return Decision(role, ("as --as says",))
