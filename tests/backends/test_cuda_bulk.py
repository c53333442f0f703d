"""Copies and pointer chases by the bulk copy unit, on an emulated GPU."""

import pytest

from cuda_emulator import emulated
from cuda_kit import MiB
from linkgauge.backends.protocol import Copy, Pattern, run
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer


@pytest.fixture
def made():
    return emulated()


def prepared(backend, text, size, operation):
    """A filled copy, and its group."""
    transfer = parse_transfer(text)
    ends = [
        None if memory.is_null else backend.allocate(memory, size, transfer.engine)
        for memory in (transfer.source, transfer.destination)
    ]
    backend.fill(ends[0], size, Pattern.WORDS, 5, inverted=False)
    if ends[1] is not None:
        backend.fill(ends[1], size, Pattern.WORDS, 5, inverted=True)
    copy = Copy(transfer, *ends, size, 5)
    return copy, backend.prepare([copy], operation)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 4097, 32 << 10, MiB + 5, 65 * MiB + 13])
def test_every_byte_arrives(made, size):
    """In rings that go round several times, with a last chunk that is shorter, and without one."""
    backend, bindings = made
    copy, group = prepared(backend, "cuda:0 -> cuda:0 by sm", size, "bulk-copy")
    run(group, 2)
    assert backend.first_mismatch(copy.destination, size, Pattern.WORDS, 5) is None
    assert [words for words in bindings.of("cuFuncSetAttribute") if words[-1] == 4 * 32 << 10]


@pytest.mark.parametrize("operation", ["chase", "bulk-chase"])
def test_pointers_are_followed(made, operation):
    """The kernel traps where a pointer leads nowhere."""
    backend, _ = made
    _, group = prepared(backend, "cuda:0 -> null by sm", MiB, operation)
    assert run(group, 2).span > 0
    assert group.policy.steps > 1000


@pytest.mark.parametrize(
    ("text", "operation", "refused"),
    [
        ("cuda:0 -> cuda:0 by ce", "bulk-copy", "kernels make bulk copies"),
        ("cuda:0 -> null by sm", "bulk-copy", "from one memory to another"),
        ("host:0 <-> cuda:0 by sm", "bulk-copy", "from one memory to another"),
        ("cuda:0 -> cuda:0 by sm", "bulk-copy", "need compute capability 9.0"),
        ("cuda:0 -> null by sm", "bulk-chase", "need compute capability 9.0"),
    ],
)
def test_what_has_no_bulk_copies_is_told(made, text, operation, refused):
    backend, _ = made
    for device in backend._devices if "9.0" in refused else ():
        device.capability = 89
    with pytest.raises(Unsupported, match=refused):
        prepared(backend, text, MiB, operation)
