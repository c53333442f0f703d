"""What the fuzz test mutates: for each kind of input, how it is made, and the commands that read
it."""

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from command_kit import called
from fuzz_kit import mutated
from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.machine import parts_of
from linkgauge.machine.captures import zstd
from linkgauge.machine.captures.archive import pack, read_archive, tar_of
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import LinkgaugeError
from linkgauge.rooms.network.outside import ToolCall, iperf_seconds, perftest_seconds
from serving_kit import MODELS, STREAM, server_of, whole
from sim_tree import tree_of

DATA = Path(__file__).parent / "data"
ALONE = {"LINKGAUGE_HISTORY": "none", "LINKGAUGE_NO_REPORT": "1"}
Prepared = Callable[[random.Random, int], Callable[[], tuple[int, str]]]
"""Of a seed: what to carry out."""


def _called(*words, **environment) -> tuple[int, str]:
    done = called(*words, **{**ALONE, **environment})
    return done.returncode, done.stderr or done.stdout[-500:]


def _measured(folder: Path, *more: str) -> Path:
    """The folder of a run of a simulated machine, of rates, totals and collectives."""
    words = ("host_to_device_memcpy_ce", "device_to_device_bidirectional_memcpy_read_ce",
             "all_reduce", "--machine", "ppu-2x2", "--size", "64K,1M", "--out", folder)  # fmt: skip
    code, said = _called("run", *words, *more)
    assert code == 0, said
    (journal,) = folder.rglob("journal.jsonl")
    return journal.parent


def _reads(source: bytes | list[bytes], name: str, *commands: tuple) -> Callable[[Path], Prepared]:
    """Each command in turn reads the mutated file, which stands for `FILE` in its words."""
    sources = source if isinstance(source, list) else [source]

    def prepare(folder: Path) -> Prepared:
        file = folder / name
        file.parent.mkdir(exist_ok=True)

        def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
            file.write_bytes(mutated(draw.choice(sources), draw))
            words = commands[seed % len(commands)]
            return lambda: _called(*(file if word == "FILE" else word for word in words))

        return one

    return prepare


def run(folder: Path) -> Prepared:
    """run.json, the same with its samples in it, or samples.bin, whose new digest run.json has."""
    whole, file = _measured(folder / "whole"), folder / "run.json"
    stored, samples = ((whole / name).read_bytes() for name in ("run.json", "samples.bin"))
    documents = (stored, called("show", whole, "--json").stdout.encode())
    commands = (
        ("show", file), ("doctor", file), ("export", file, "--csv"),
        ("report", file, "-o", folder / "report.html"), ("compare", file, file),
        ("show", file, "--matrix", "--utilization", "-v"), ("export", file, "--junit"),
        ("baseline", file, "-o", folder / "baseline.json"),
    )  # fmt: skip

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        document, new = mutated(draw.choice(documents), draw), samples
        if seed % 3 == 0:
            new = mutated(samples, draw)
            named = {"bytes": len(new), "sha256": sha256(new).hexdigest()}
            document = json.dumps(json.loads(stored) | {"samples": named}).encode()
        file.write_bytes(document)
        file.with_name("samples.bin").write_bytes(new)
        return lambda: _called(*commands[seed % len(commands)])

    return one


def _journals(folder: Path) -> list[bytes]:
    whole = [_measured(folder / "whole"), _measured(folder / "soak", "--for", "2s")]
    return [(each / "journal.jsonl").read_bytes() for each in whole]


def journal(folder: Path) -> Prepared:
    place = folder / "run"
    return _reads(_journals(folder), "run/journal.jsonl", ("show", place))(folder)


def resume(folder: Path) -> Prepared:
    """Cut off at some line, and mutated before it."""
    sources = _journals(folder)
    file = folder / "run" / "journal.jsonl"
    file.parent.mkdir()

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        lines = draw.choice(sources).splitlines(keepends=True)
        # Near the end: what is left is measured in each try.
        kept = lines[: draw.randint(max(1, len(lines) - 40), len(lines))]
        file.write_bytes(mutated(b"".join(kept), draw))
        return lambda: _called("run", "--resume", file.parent)

    return one


def packed(folder: Path) -> Prepared:
    """The archive or the run in it."""
    whole, file = _measured(folder / "whole"), folder / "one.tar.zst"
    source, samples = ((whole / name).read_bytes() for name in ("run.json", "samples.bin"))

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        inside = mutated(source, draw) if seed % 2 else source
        content = zstd.compressed(tar_of(
            Captured({"run/run.json": inside, "run/samples.bin": samples})
        ))  # fmt: skip
        file.write_bytes(content if seed % 2 else mutated(content, draw))
        return lambda: _called("show", file)

    return one


def machine(folder: Path) -> Prepared:
    sources = [load(name)[1].encode() for name in ("ppu-2x2", "vm-degraded", "dgx-h200-8")]
    commands = (
        ("devices", "--machine", "FILE"),
        ("doctor", "--machine", "FILE"),
        ("run", "--machine", "FILE", "--dry-run"),
    )
    return _reads(sources, "machine.yml", *commands)(folder)


def hardware(folder: Path) -> Prepared:
    source = called("devices", "--machine", "dgx-h200-8", "--yaml").stdout.encode()
    command = ("run", "host_to_device_memcpy_ce", "--machine", "ppu-2x2", "--hardware", "FILE",
               "--samples", "1", "--size", "64K", "--out", folder / "runs")  # fmt: skip
    return _reads(source, "hardware.yml", command)(folder)


def limits(folder: Path) -> Prepared:
    source = """limits:
      - {device: "NVIDIA H200*", benchmark: "host_to_device_memcpy_*", limit: "≥ 50 GB/s"}
      - {benchmark: "*_latency_*", limit: "p99 <= 25 us"}
      - {limit: "min >= 0.8 × achievable"}
      - {benchmark: "*", limit: "slow_p95 >= 1e3 GB/s"}
    """.encode()
    whole = _measured(folder / "whole")
    return _reads(source, "limits.yml", ("show", whole, "--limits", "FILE"))(folder)


def domain(folder: Path) -> Prepared:
    sources = [file.read_bytes() for file in sorted((DATA / "domains").glob("*.xml"))]
    sources += [(DATA / "definitions" / name).read_bytes() for name in ("proxmox.conf", "qemu.txt")]
    on_host, on_guest = folder / "host.tgz", folder / "guest.tgz"
    on_host.write_bytes(pack(_simulated("dgx-h200-8")))
    on_guest.write_bytes(pack(_simulated("vm-degraded")))
    commands = (
        ("vm", "FILE", "--root", on_host, "--as", "host"),
        ("vm", "FILE", "--root", on_guest, "--as", "guest"),
        ("vm", "FILE"),
    )
    return _reads(sources, "domain.xml", *commands)(folder)


def _simulated(name: str) -> Captured:
    return tree_of(SimBackend(parts_of(parse_description(load(name)[1]))))


def tree(folder: Path) -> Prepared:
    """Some files of a captured machine, or the archive."""
    own = folder / "own.tgz"
    code, said = _called("capture", own)
    assert code == 0, said
    machines = [read_archive(own), _simulated("dgx-h200-8"), _simulated("vm-degraded")]
    file = folder / "machine.tgz"
    commands = ("devices", "-v"), ("doctor",), ("vm",), ("devices", "--json")

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        found = draw.choice(machines)
        files = dict(found.files)
        for path in draw.sample(sorted(files), draw.choice((1, 5, 50))):
            files[path] = mutated(files[path], draw)
        content = pack(Captured(files, found.links))
        file.write_bytes(mutated(content, draw) if seed % 10 == 0 else content)
        return lambda: _called(*commands[seed % len(commands)], "--root", file)

    return one


def history(folder: Path) -> Prepared:
    """The database's bytes, or a value in it."""
    source = folder / "whole.db"
    for number in range(3):
        _called("history", "import", _measured(folder / str(number)), LINKGAUGE_HISTORY=source)
    content, file = source.read_bytes(), folder / "history.db"
    benchmark = "host_to_device_memcpy_ce"
    commands = (("list",), ("trend", benchmark), ("list", "--json"), ("trend", benchmark, "--csv"))

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        for beside in ("-wal", "-shm", "-journal"):
            file.with_name(file.name + beside).unlink(missing_ok=True)
        file.write_bytes(content if seed % 2 else mutated(content, draw))
        if seed % 2:
            _change_a_value(file, draw)
        return lambda: _called("history", *commands[seed % 4], "--history", file)

    return one


def _change_a_value(file: Path, draw: random.Random) -> None:
    wrong = (None, -1, 0, 1e308, float("inf"), "", "x" * 100_000, b"\xff\xfe", "[" * 20_000, 2**62)
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        (table,) = draw.choice(tables)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        row = draw.choice(
            database.execute(f"SELECT * FROM {table}").fetchall() or [(None,) * len(columns)]
        )
        this = " AND ".join(f"{column} IS ?" for column in columns)
        with suppress(sqlite3.IntegrityError):  # what the file itself forbids is not in one
            database.execute(
                f"UPDATE {table} SET {draw.choice(columns)} = ? WHERE {this}",
                (draw.choice(wrong), *row),
            )


def baseline(folder: Path) -> Prepared:
    whole, file = _measured(folder / "whole"), folder / "whole.json"
    code, said = _called("baseline", whole, "-o", file)
    assert code == 0, said
    commands = (
        ("gate", "--baseline", "FILE", "--current", whole, "--no-history"),
        ("gate", "--baseline", "FILE", "--current", whole, "--no-history", "--junit"),
    )
    return _reads(file.read_bytes(), "baseline.json", *commands)(folder)


NUMBERS = (
    "COLUMNS", "LINES", "RANK", "WORLD_SIZE", "LOCAL_RANK", "PMI_RANK", "PMI_SIZE",
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_NODES", "LINKGAUGE_RANK",
    "LINKGAUGE_RANKS", "NCCL_TESTS_DEVICE", "NCCL_TESTS_MIN_BW",
)  # fmt: skip
PLACES = (
    "HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LINKGAUGE_HISTORY", "LINKGAUGE_FIRST",
    "LINKGAUGE_TOKEN", "LINKGAUGE_HOST", "CUDA_HOME", "TMPDIR", "SLURM_JOB_ID", "PMIX_NAMESPACE",
    "NO_COLOR", "FORCE_COLOR", "TERM", "LANG", "LC_ALL", "TZ", "OPENAI_API_KEY", "USER",
)  # fmt: skip
TEXTS = (
    "", "0", "-1", "1", "2", "abc", "²", "0x", "1e308", "9" * 5000, "~nobody-of-this-name/x", "/",
    "/proc/1", "sqlite:///", "://", "postgresql://[", "none", "\udcff", "x" * 5000, "%s", "a\nb",
)  # fmt: skip


def environment(folder: Path) -> Prepared:
    """One to three variables that commands read."""
    run = ("run", "host_to_device_memcpy_ce", "--machine", "ppu-2x2", "--size", "64K", "--samples",
           "1", "--out", folder / "runs")  # fmt: skip
    history, nccl = ("history",), ("as", "--machine", "ppu-2x2", "all_reduce_perf", "-g", "2")
    commands = (
        run,
        ("devices", "--machine", "ppu-2x2"),
        history,
        nccl,
        ("doctor", "--root", folder),
    )
    (folder / "proc").mkdir()

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        names = draw.sample((*NUMBERS, *PLACES), draw.choice((1, 2, 3)))
        changed = {name: draw.choice(TEXTS) for name in names}
        return lambda: _called(*commands[seed % len(commands)], **changed)

    return one


def perftest(folder: Path) -> Prepared:
    files = sorted((DATA / "perftest").rglob("*.json"))
    given = folder / "given.json"
    call = ToolCall(size=65536, loops=100, streams=1, device=None, host=None, port=1, file=given)

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        file = draw.choice(files)
        given.write_bytes(mutated(file.read_bytes(), draw))
        return lambda: _read(lambda: perftest_seconds(file.stem.partition("-")[0], call))

    return one


def iperf3(folder: Path) -> Prepared:
    whole = b'{\n"end":{"sum_received":{"bytes":1000,"seconds":1.5}},\n"error":"none"\n}\n'
    call = ToolCall(65536, 100, 1, None, None, 1, folder / "unused")

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        said = mutated(whole, draw)
        return lambda: _read(lambda: iperf_seconds(call, said))

    return one


def _read(reading: Callable[[], float]) -> tuple[int, str]:
    try:
        reading()
    except LinkgaugeError as error:
        return 3, str(error)
    return 0, ""


def serving(folder: Path) -> Prepared:
    """What the server answers to GET or POST: its head or its body."""

    def one(draw: random.Random, seed: int) -> Callable[[], tuple[int, str]]:
        method, body = draw.choice((("GET", MODELS), ("POST", STREAM)))
        head, rest = whole(body).split(b"\r\n\r\n", 1)
        answer = (
            mutated(head, draw) + b"\r\n\r\n" + rest
            if seed % 3 == 0
            else whole(mutated(body, draw))
        )
        return lambda: _asked({method: answer}, folder / str(seed))

    return one


def _asked(answers: dict[str, bytes], out: Path) -> tuple[int, str]:
    with server_of(answers) as server:
        return _called("ai", "serving", "--url", server.url, "--batch", "1", "--tokens", "4",
                       "--samples", "1", "--out", out)  # fmt: skip


KINDS = {
    "run.json": run, "journal": journal, "resume": resume, "pack": packed, "machine": machine,
    "hardware.yml": hardware, "limits.yml": limits, "domain XML": domain, "tree": tree,
    "history": history, "baseline": baseline, "perftest": perftest, "iperf3": iperf3,
    "serving": serving, "environment": environment,
}  # fmt: skip
