"""The cuda backend's logic, without a GPU: test_cuda_gpu.py has what needs one."""

import ctypes
from itertools import pairwise

import pytest

from cuda_kit import Bindings, MiB
from linkgauge.backends.cuda import compiler as cuda_compiler
from linkgauge.backends.cuda.launches import Span
from linkgauge.backends.cuda.settings import (
    DEFAULT,
    SPLIT_DEFAULT,
    CopySettings,
    chosen,
    key,
    load_tuned,
    store_tuned,
)
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import EngineSettings


@pytest.fixture
def bindings():
    return Bindings()


class TestSettings:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("host:0 -> cuda:1 by cuda:1.sm", "sm from-host"),
            ("cuda:1 -> host:0/huge by cuda:1.ce", "ce to-host"),
            ("cuda:0 -> cuda:1 by cuda:0.sm", "sm peer-write"),
            ("cuda:0 -> cuda:1 by cuda:1.sm", "sm peer-read"),
            ("cuda:0 -> cuda:1 by cuda:2.sm", "sm other"),
            ("host:0 -> cuda:1 by cuda:2.ce", "ce other"),
            ("cuda:0 -> cuda:0 by ce", "ce local"),
            ("cuda:0 <-> host:0 by sm", "sm split"),
            ("cuda:0 -> null by sm", "sm other"),
        ],
    )
    def test_path_is_seen_from_the_engine(self, text, expected):
        assert key(parse_transfer(text)) == expected

    def test_the_bulk_kernel_is_for_one_way_only(self):
        bulk = EngineSettings(kernel="bulk")
        one_way, both = map(parse_transfer, ("cuda:0 -> host:0 by sm", "cuda:0 <-> host:0 by sm"))
        assert chosen({}, bulk, one_way).kernel == "bulk"
        assert chosen({}, bulk, both) == SPLIT_DEFAULT

    def test_tuned_settings_are_kept_beside_those_of_other_paths(self, tmp_path):
        store_tuned("NVIDIA H200", {"ce local": CopySettings(streams=2)}, tmp_path)
        path = store_tuned("NVIDIA H200", {"sm local": CopySettings(unroll=4)}, tmp_path)
        assert path.name == "nvidia-h200.json"
        assert load_tuned("NVIDIA H200", tmp_path) == {
            "ce local": CopySettings(streams=2),
            "sm local": CopySettings(unroll=4),
        }
        store_tuned("NVIDIA H200", {"ce local": None}, tmp_path)
        assert load_tuned("NVIDIA H200", tmp_path) == {"sm local": CopySettings(unroll=4)}

    @pytest.mark.parametrize(
        "content",
        [
            b'{"ce local": {"streams":',
            b'{"ce local": {"streams": 0}}',
            b'{"ce local": {"streams": 1000000}}',
            b'{"sm local": {"threads": 100}}',
            b'{"sm local": {"blocks": -5}}',
            b'{"\xff": {}}',
            b'{"sm local": {"later": ' + b"[" * 100_000,
        ],
    )
    def test_a_broken_file_is_as_none(self, tmp_path, content):
        store_tuned("x", {"ce local": DEFAULT}, tmp_path).write_bytes(content)
        assert load_tuned("x", tmp_path) == {}


class TestGeometry:
    @pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 10 * MiB + 7])
    @pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
    def test_slices_cover_the_size_once(self, size, count):
        pieces = Span(1 << 40, 1 << 30, size).slices(count)
        assert 1 <= len(pieces) <= max(1, count)
        assert pieces[0][:2] == (1 << 40, 1 << 30)
        assert all(
            place + length == after and source + length == next_source
            for (place, source, length), (after, next_source, _) in pairwise(pieces)
        )
        assert sum(length for *_, length in pieces) == size
        assert all(length > 0 and place % 4096 == 0 for place, _, length in pieces)


class Nvrtc:
    """Compiles anything to its own options."""

    def __init__(self):
        self.compiled = 0

    def nvrtcVersion(self):  # noqa: N802
        return 0, 13, 0

    def nvrtcGetSupportedArchs(self):  # noqa: N802
        return 0, [75, 90]

    def nvrtcCreateProgram(self, source, name, *headers):  # noqa: N802
        return 0, name

    def nvrtcCompileProgram(self, program, count, options):  # noqa: N802
        self.compiled += 1
        self.binary = b" ".join(options)
        return (6 if b"-DBAD" in options else 0,)

    def __getattr__(self, name):
        def call(program, out=None):
            if name.endswith("LogSize"):
                return 0, 9
            if name.endswith("Size"):
                return 0, len(self.binary)
            if out is not None:
                text = b"the log\n\0" if name.endswith("Log") else self.binary
                ctypes.memmove(out, text, len(text))
            return (0,)

        return call


class TestCompiler:
    def test_compiles_once_and_anew_where_the_file_is_broken(self, tmp_path):
        nvrtc = Nvrtc()
        compiler = cuda_compiler.Compiler(tmp_path, nvrtc)
        first = compiler.compile("gate", 90)
        assert b"sm_90" in first
        assert compiler.compile("gate", 90) == first
        assert nvrtc.compiled == 1
        (file,) = tmp_path.iterdir()
        file.write_bytes(file.read_bytes()[:-1])
        assert compiler.compile("gate", 90) == first
        assert nvrtc.compiled == 2
        compiler.compile("gate", 90, ("X=1",))
        assert nvrtc.compiled == 3

    def test_a_newer_device_gets_ptx_and_an_older_one_a_reason(self, tmp_path):
        compiler = cuda_compiler.Compiler(tmp_path, Nvrtc())
        assert b"compute_90" in compiler.compile("gate", 103)
        with pytest.raises(Unsupported, match=r"dropped compute capability 7\.0"):
            compiler.compile("gate", 70)

    def test_the_log_is_in_the_error(self, tmp_path):
        with pytest.raises(BackendError, match=r"compile gate\.cu: the log"):
            cuda_compiler.Compiler(tmp_path, Nvrtc()).compile("gate", 90, ("BAD",))

    @pytest.mark.parametrize("capability", [75, 90])
    def test_every_kernel_compiles(self, tmp_path, capability):
        pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
        try:
            compiler = cuda_compiler.Compiler(tmp_path)
        except Unsupported as reason:
            pytest.skip(str(reason))
        for name in ("gate", "stream", "pattern", "chase"):
            assert compiler.compile(name, capability)
        for split, spread, place, streaming in ((0, 0, 0, 0), (1, 0, 1, 0), (0, 1, 0, 1)):
            defines = ("UNROLL=4", "THREADS=128", f"SPLIT={split}", f"SPREAD={spread}")
            more = (f"IN_PLACE={place}", f"STREAMING={streaming}")
            assert compiler.compile("copy", capability, defines + more)
        for payload in (128, 256, 512):
            assert compiler.compile("pieces", capability, ("PIECE=4096", f"PAYLOAD={payload}"))
        if capability >= 90:
            assert compiler.compile("bulk", capability, ("STAGE=32768", "STAGES=4", "AHEAD=2"))
