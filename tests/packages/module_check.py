"""Run by a Python of another CPU on an unpacked wheel: its native module loads and copies."""

import sys

sys.path.insert(0, sys.argv[1])

from linkgauge import _native as native

SIZE = 1 << 20
source, destination = (native.Memory(SIZE, native.Kind.PAGEABLE, None, [0]) for _ in range(2))
native.fill(source.address, SIZE, 7, native.Pattern.WORDS, False, [0])
native.fill(destination.address, SIZE, 7, native.Pattern.WORDS, True, [0])
assert native.first_mismatch(destination.address, SIZE, 7, native.Pattern.WORDS, [0]) == 0
for kernel in native.kernels(native.Op.COPY):
    native.fill(destination.address, SIZE, 7, native.Pattern.WORDS, True, [0])
    job = native.Job(
        native.Op.COPY, source.address, destination.address, SIZE, 0, [0], kernel=kernel
    )
    team = native.Team([job])
    team.arm(1)
    team.open()
    (span,) = team.wait()
    team.close()
    assert span.end > span.begin
    assert native.first_mismatch(destination.address, SIZE, 7, native.Pattern.WORDS, [0]) is None
    print("copied by", kernel)
try:
    native.Memory(0, native.Kind.PAGEABLE, None, [0])
except ValueError as error:
    print("refused:", error)
