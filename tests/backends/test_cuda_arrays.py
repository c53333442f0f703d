"""Operations on arrays by kernels, on a GPU that is this CPU: bytes, checks and the search for the
fastest kernel."""

import pytest

from cuda_emulator import EmulatingCompiler, emulated
from cuda_kit import Status
from linkgauge.backends.cuda import tune
from linkgauge.backends.cuda.settings import ARRAY_DEFAULT, CopySettings, load_tuned
from linkgauge.backends.protocol import RESULTS, Copy, Pattern
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import ARRAYS, named

OPERATIONS = [name for name, work in ARRAYS.items() if work.mode == "peak"]
TILES = CopySettings(blocks=3, threads=64, unroll=2)
SWEEP = CopySettings(blocks=3, threads=64, unroll=2, spread=True, streaming=True)
LARGE = 3 * 64 * 2 * 16 * 4 + 1000
"""Some rounds of three blocks, and a rest."""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "linkgauge" / "tuned"


@pytest.fixture
def device():
    backend, _ = emulated()
    yield backend
    backend.close()


def transfer_of(operation):
    work = ARRAYS[operation]
    ends = "cuda:0" if work.read else "null", "cuda:0" if work.written else "null"
    return parse_transfer(f"{ends[0]} -> {ends[1]} by cuda:0.sm")


def lend(backend, operation, size, seed=7):
    """Buffers as the engine fills them."""
    work, transfer = ARRAYS[operation], transfer_of(operation)
    given = Pattern.NUMBERS if work.computes else Pattern.WORDS
    source = destination = None
    if work.read:
        whole = size * named(operation).source_arrays
        source = backend.allocate(transfer.source, whole, transfer.engine)
        backend.fill(source, whole, given, seed, inverted=False)
    if work.written:
        destination = backend.allocate(transfer.destination, size, transfer.engine)
        backend.fill(destination, size, made(operation), seed, inverted=True)
    return Copy(transfer, source, destination, size, seed)


def made(operation):
    kind = ARRAYS[operation].kind
    return RESULTS.get(kind, Pattern.CONSTANT if kind == "write" else Pattern.WORDS)


def run(group, loops=2):
    group.arm(loops)
    group.open()
    try:
        return group.wait()
    finally:
        group.close()


@pytest.mark.parametrize("settings", [TILES, SWEEP], ids=["tiles", "sweep"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_byte_is_as_the_operation_makes_it(device, operation, settings):
    unit = 16 if ARRAYS[operation].read > 1 else 8 if ARRAYS[operation].computes else 1
    for size in (1, 8, 16, 17, 4097, LARGE + 13):
        size = -(-size // unit) * unit
        copy = lend(device, operation, size)
        timing = run(device.prepare_with([copy], settings, operation))
        if copy.destination is None:
            assert timing.checksums == (device.checksum(copy.source, size),)
        else:
            found = device.first_mismatch(copy.destination, size, made(operation), copy.seed)
            assert found is None, size


def test_two_arrays_of_a_kernel_begin_at_an_access(device):
    with pytest.raises(Unsupported, match="takes a multiple of 16 bytes, not 4104 B"):
        device.prepare([lend(device, "peak-triad", 4104)], "peak-triad")


@pytest.mark.parametrize(
    ("text", "operation", "says"),
    [
        ("host:0 -> cuda:0 by sm", "peak-copy", "in its own device's memory"),
        ("cuda:0 -> cuda:0 by sm", "stream-copy", "has no array kernels"),
        ("cuda:0 -> cuda:0 by ce", "peak-copy", "has no array kernels"),
        ("cuda:0 -> null by sm", "peak-copy", "peak-copy is another operation"),
    ],
)
def test_other_arrays_are_unsupported(device, text, operation, says):
    transfer = parse_transfer(text)
    ends = [
        None if end.is_null else device.allocate(end, 4096, transfer.engine)
        for end in (transfer.source, transfer.destination)
    ]
    with pytest.raises(Unsupported, match=says):
        device.prepare([Copy(transfer, *ends, 4096, 1)], operation)


@pytest.mark.parametrize("operation", ["peak-read", "peak-triad"])
def test_nothing_is_left_of_a_kernel_that_cannot_be_had(operation, monkeypatch):
    backend, bindings = emulated()
    copy = lend(backend, operation, 4096)
    held = set(bindings.held)

    def broken(*_):
        raise BackendError("compile arrays.cu", "no")

    monkeypatch.setattr(EmulatingCompiler, "compile", broken)
    with pytest.raises(BackendError, match=r"compile arrays\.cu"):
        backend.prepare([copy], operation)
    assert set(bindings.held) == held


def test_small_arrays_say_that_the_cache_may_hold_them(device):
    copy = lend(device, "peak-write", 4096)  # of a device whose cache has 9 bytes
    run(device.prepare_with([copy], TILES, "peak-write"))
    device.prepare([copy], "peak-write").close()
    (how,) = device.remarks(copy.transfer)
    assert how == "cuda:0.sm: plain of 1024 threads, 4 in flight"
    device._devices[0].attribute = lambda name: 4096
    device.prepare([copy], "peak-write").close()
    assert "less than 4 times the L2 cache (4.0 KiB)" in device.remarks(copy.transfer)[1]
    device.prepare([copy]).close()
    assert device.remarks(copy.transfer) == ()


class TestSearch:
    """The kernels' rates are made up; what they do to bytes is real."""

    SMALL = (ARRAY_DEFAULT, TILES, SWEEP)

    @pytest.fixture
    def search(self, monkeypatch):
        monkeypatch.setattr("linkgauge.backends.cuda.arrays.LEAST_SEARCHED", 1 << 12)
        monkeypatch.setattr(tune, "ROUNDS", 1)
        monkeypatch.setattr(tune, "candidates", lambda path, count: iter(self.SMALL))
        backend, bindings = emulated(tuned=True)
        rates = {ARRAY_DEFAULT: 1.0, TILES: 2.0, SWEEP: 3.0}
        measured = tune._Trial._measured
        tried = []

        def made_up(trial, settings):
            tried.append(settings)
            _, checksum = measured(trial, settings)
            return rates.get(settings, 0.5), checksum

        monkeypatch.setattr(tune._Trial, "_measured", made_up)
        backend.tried, backend.rates, backend.bindings = tried, rates, bindings
        yield backend
        backend.close()

    def prepared(self, backend, operation="peak-write", size=1 << 12):
        copy = lend(backend, operation, size)
        backend.prepare([copy], operation).close()
        return backend.remarks(copy.transfer)[0]

    @pytest.mark.parametrize("operation", ["peak-read", "peak-triad"])
    def test_the_fastest_is_found_once_and_remembered_for_the_model(self, search, cache, operation):
        words = "cuda:0.sm: plain 3 blocks of 64 threads, 2 in flight, spread, streaming"
        assert self.prepared(search, operation) == words
        assert load_tuned("NVIDIA H200", cache) == {f"sm {operation}": SWEEP}
        tried = len(search.tried)
        assert self.prepared(search, operation) == words
        assert len(search.tried) == tried

    def test_what_works_wrongly_has_not_won(self, search, monkeypatch):
        is_right = tune._Trial._is_right

        def wrong_by_sweep(trial, checksum):
            return is_right(trial, checksum) and search.tried[-1] != SWEEP

        monkeypatch.setattr(tune._Trial, "_is_right", wrong_by_sweep)
        assert "3 blocks of 64 threads, 2 in flight" in self.prepared(search)
        assert "spread" not in self.prepared(search)

    def test_a_dead_device_ends_it(self, search):
        copy = lend(search, "peak-write", 1 << 12)
        search.bindings.failing["cuLaunchKernel"] = Status.CUDA_ERROR_LAUNCH_FAILED
        with pytest.raises(BackendError, match="cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED"):
            search.prepare([copy], "peak-write")
