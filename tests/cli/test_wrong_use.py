"""Wrong uses: each is exit 2 and one line that says what to do, before anything is measured."""

import os
import shlex
import sys

import pytest

import linkgauge as api
from command_kit import called
from history_kit import BENCHMARK, run_at
from linkgauge.model.errors import InputError, ResultsError, unwritable
from linkgauge.report.files import write_run

RUN = ("run", BENCHMARK, "--machine", "ppu-8", "--samples", "1", "--no-report", "--label", "kept")
COPY = "host_to_host_memcpy_copy_cpu"
ON_HOST = f"run {COPY} --backend host"
COPIED = "copy 'host:0 -> host:0 by cpu'"
SOAK = "run device_local_copy --machine ppu-8"
WATCH = "watch --machine ppu-8 --size 1M"
SCALE = "scale --machine full-8"
VARY = "vary --machine riscv-2gpu"
HALF = f"{VARY} {COPY} --cpus 0-15 --cpus 0-7 --size 1M"
DRAWN = "run device_to_device_memcpy_read_ce --machine dgx-h200-8"
LETTERS = ",".join(map(str, range(27)))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with one run, and a history of that and another one."""
    folder = tmp_path_factory.mktemp("kept")
    done = called(*RUN, cwd=folder, LINKGAUGE_HISTORY=folder / "h.db")
    assert done.returncode == 0, done.stderr
    (folder / "of").mkdir()
    write_run(folder / "of", run_at(0))
    (folder / "limits.yml").write_text('limits: [{benchmark: hots_to_device, limit: ">= 1 GB/s"}]')
    (folder / "file").touch()
    assert called("history", "import", "of", cwd=folder, LINKGAUGE_HISTORY="h.db").returncode == 0
    return folder


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run allreduce", "unknown benchmark 'allreduce', did you mean 'all_reduce'?"),
        ("run --backend opncl", "unknown backend 'opncl', did you mean 'opencl'?"),
        ("run --machine DGX_H200-8", "did you mean 'dgx-h200-8'?"),
        ("run --machine ppu-8 --fault 'slo sim:0'", "unknown fault 'slo', did you mean 'slow'?"),
        ("run --host-mode streem", "--host-mode streem is unknown, did you mean 'stream'?"),
        ("run --host-kernel fast", "unknown host kernel 'fast'"),
        ("run --machine ppu-8 --host-kernel libc", "a simulated machine has none"),
        ("run all_reduce --types flaot", "--types flaot is unknown, did you mean 'float'?"),
        ("run --size -5", "negative"),
        ("run --size 1000000G", "does not fit"),
        ("run --size 1K:1G", "a sweep is 1K:1G:x2"),
        ("run --loops -1", "too few"),
        ("run --loops 99999999999999999999", "too many"),
        ("run --dry-run --csv", "a dry run measures nothing: use --json"),
        ("run --threads 100", "multiple of 64"),
        (f"{ON_HOST} --tune", "nothing to tune"),
        (f"{ON_HOST} --kernel bulk", "--kernel: only backend cuda"),
        (f"{ON_HOST} --only-d2d", "nothing to measure"),
        (f"{ON_HOST} --nsys", "nsys is not on the PATH: install NVIDIA Nsight Systems"),
        (f"{ON_HOST} --ncu", "ncu is not on the PATH: install NVIDIA Nsight Compute"),
        (f"{COPIED} --nsys", "--nsys keeps its files with the run: give --out"),
        ("copy 'host:0 -> cuda:0' --streams 33", "--streams 33: give 1 to 32"),
        (f"{COPIED} --streams 2 --blocks 9", "--blocks, --streams: "),
        ("copy 'sim:0 -> sim:1' --machine ppu-8 --threads 64", "only backend cuda supports this, "),
        ("copy 'host:0 -> host:99'", "unknown memory 'host:99'"),
        ("copy 'host:0 -> moon:0'", "moon"),
        ("copy 'host:0 -> host:0 via ce'", "expected 'by' and an engine, '&' or the end, found "),
        (f"{COPIED[:-1]} and host:0 -> host:0'", "expected '&' or the end, found 'and'"),
        ("latency latency_sync --size 8", "no sizes"),
        ("traffic --buffer 1K:1G:+1K", "give at most 64"),
        ("traffic --host-kernel fast", "unknown host kernel 'fast'"),
        ("ai inferense", "unknown workload 'inferense', did you mean 'inference'?"),
        ("ai --prompt 1,x", "--prompt 1,x: give numbers"),
        ("ai --seed -1", "--seed -1: give 0 to"),
        ("as nvbandwith", "unknown tool 'nvbandwith', did you mean 'nvbandwidth'?"),
        (f"{SCALE} allreduce", "unknown collective 'allreduce', did you mean 'all_reduce'?"),
        (f"{SCALE} --gpus 0,2", "--gpus 0,2: give 1 or more"),
        (f"{SCALE} --gpus 16", "--gpus 16 is too many: sim has 8 devices"),
        (f"{SCALE} --nodes two", "--nodes two: give numbers of nodes, such as 1,2,4,8"),
        (f"{SCALE} --nodes 2 --gpus 2", "--gpus and --nodes exclude each other"),
        (f"{SOAK} --for 1s --max-temperature 900", "900: give degrees Celsius, such as 85"),
        ("run --backend host --for 1s --max-temperature 85", "no accelerator here reports its te"),
        (f"{WATCH} --every often", "--every 'often' is not understood: write 30s, 10m, 8h or"),
        (f"{WATCH},2M", "--size: a watch measures one size"),
        (f"{DRAWN} --sample-pairs 9999999999", "--sample-pairs 9999999999 is too many"),
        (f"{DRAWN} --sample-pairs 4 --seed 4294967296", "give 0 to 4294967295"),
        (f"{SOAK} --sample-pairs 3", "--sample-pairs has no effect: no benchmark measures pairs"),
        (f"{DRAWN} --limits limits.yml", "limits.yml line 1: no benchmark matches 'hots_to_devi"),
        ("show kept --limits limits.yml", "limits.yml line 1: no benchmark matches 'hots_to_devi"),
        ("check --machine ppu-8 --limits limits.yml", "limits.yml line 1: no benchmark matches"),
        ("check --under 25h", "--under "),
        ("check --under ٦٠s", "--under "),
        (f"{HALF} 'host:0 -> host:0 by cpu'", "transfers in one argument"),
        (f"{VARY} 'host:0 -> host:0' --numa-node 0 --numa-node 1", "name their nodes"),
        (f"{HALF} --rounds 201", "too many"),
        (f"{HALF} --significance 0.3", "give at most 20%"),
        (f"{HALF} --significance none", "significance 'none' is not understood"),
        (f"{VARY} {COPY} --cpus 0 --cpus 3-1", "--cpus 3-1: 3-1 ends before it starts"),
        (f"{VARY} {COPY} --cpus 0 --cpus 0,", "give CPUs such as 0-3,8, or all"),
        (f"{VARY} {COPY} --numa-node 0 --numa-node x", "give the number of a node, or near"),
        (f"{VARY} {COPY} --memory pinned --memory hgue", "hgue is unknown, did you mean 'huge'?"),
        (f"{VARY} {COPY} --streams 1 --streams 0", "--streams 0: give 1 to 32"),
        (f"{VARY} {COPY} --affinity on --affinity yes", "--affinity yes: give on or off"),
        (f"{VARY} {COPY} --engine ce --engine cpu", "--engine cpu: give ce or sm"),
        (f"{VARY} {COPY} --graph on --graph ce", "--graph ce: give on or off"),
        (f"{VARY} {COPY} --env A={LETTERS}", "27 settings are too many: give 26"),
        (f"{VARY} --experiment pined", "unknown experiment 'pined', did you mean 'pinned'?"),
        (f"{VARY} --experiment node", "riscv-2gpu has one NUMA node, so no memory is far"),
        ("exporter --textfile a.txt", "node_exporter reads files that end in .prom"),
        ("exporter --history a --results b", "--history and --results: choose one"),
        ("exporter --refresh 0", "--refresh '0': give more than 0"),
        ("exporter --refresh 1d", "--refresh 86400: give less than a day"),
        ("exporter --history mysql://x/y", "no history can be in mysql"),
        ("devices --hardware gone", "gone"),
        ("doctor kept --machine ppu-8", "--machine"),
        ("doctor nowhere", "'nowhere' is not a file"),
        ("capture gone/x.tgz --backend host", "gone/x.tgz"),
        ("vm --root . --machine ppu-8", "give one of --root and --machine"),
        ("compare kept", "compare what"),
        ("gate --baseline kept --min-loss 5% --detect 5%", "give a larger"),
        ("gate --baseline kept -o x", "of which format"),
        ("gate --curent x", "linkgauge gate has no option --curent, did you mean '--current'?"),
        ("show kepd", "did you mean 'kept'?"),
        ("show nonexistent/run.json", "cannot read"),
        ("show latest", "linkgauge show without a name shows the latest run"),
        ("devices nvidia", "linkgauge devices without a name shows this machine"),
        ("vm guest", "or did you mean --as guest?"),
        ("list memcpy", "'linkgauge list | grep memcpy' shows the names with it"),
        ("list host_to", "did you mean --prefix host_to?"),
        ("run --machine h100x80 --dry-run", "80 × H100: give 1 to 64 of a product"),
        ("exporter --benchmark host_to_devcie_memcpy_ce --textfile x.prom",
         "unknown benchmark 'host_to_devcie_memcpy_ce', did you mean 'host_to_device_memcpy_ce'?"),
        ("show results --utilization", "--limits and --utilization take one run"),
        ("show kept --against host", "--against takes a folder of runs"),
        ("show results/simulated-ppu-8 --against no", "no run is labelled 'no': give one of kept"),
        ("report kept --against host", "--against is of several runs"),
        ("export kept --parquet", "give a file with -o"),
        ("export --yaml", "linkgauge export has no option --yaml: devices has it"),
        ("pack results/simulated-ppu-8/kept/none", "none"),
        ("history trends", "unknown action 'trends', did you mean 'trend'?"),
        ("history trend host_to_device_memcpy", f"did you mean '{BENCHMARK}'?"),
        (f"history trend {BENCHMARK} 0-1", "give its row and its column"),
        (f"history trend {BENCHMARK} 77,7", f"no complete run of {BENCHMARK} at 77,7"),
        ("history list x", "takes no 'x'"),
        ("history list --last 0", "--last 0 is too few"),
        ("history list --keep 3", "--keep and --yes are of history prune"),
        ("history prune --keep all", "give a time such as 90d"),
        ("history prune --keep 3 --json", "--json is of list and trend"),
        ("history prune --keep 1d --all", "--all is of history list and trend"),
        ("history import", "import what"),
        ("history import nowhere", "there is no nowhere"),
        ("history import results --label x", "give no filter"),
        ("copy gpu0 gpu1", 'in quotes: linkgauge copy "cuda:0 -> cuda:1"'),
        ("copy host:0 host:7", 'in quotes: linkgauge copy "host:0 -> host:7"'),
        ("copy sim:0 to sim:1", 'in quotes: linkgauge copy "sim:0 -> sim:1"'),
        ("copy host:0 -", 'in quotes: linkgauge copy "host:0 -> DESTINATION"'),
        ("copy 'sim:0 -> sim:1' 64M", "copy takes no argument '64M', did you mean --size 64M?"),
        ("copy", 'needs TRANSFERS, as in: linkgauge copy "cuda:0 -> cuda:1 by ce" --size 256M'),
        ("gate", "needs --baseline REF, as in: linkgauge gate --baseline baseline.json --current"),
        ("gate results/node3", "needs --baseline REF, as in: linkgauge gate --baseline baseline."),
        ("gate --baseline kept results/x", "did you mean --current results/x?"),
        ("gate --baseline kept --threshold 5%", "did you mean '--min-loss'?"),
        ("as", "needs TOOL, as in: linkgauge as nvbandwidth -t host_to_device_memcpy_ce"),
        ("show kept other", "takes one run: linkgauge compare kept other compares"),
        ("show --last", "linkgauge show without a name shows the latest run"),
        ("export kept out.csv", "export takes no argument 'out.csv', did you mean -o out.csv?"),
        ("list nosuch", "list takes no argument 'nosuch', as in: linkgauge list"),
        ("check 60s", "did you mean --under 60s?"),
        ("scale all_reduce 8", "did you mean --gpus 8?"),
        ("exporter 9400", "did you mean --listen 9400?"),
        ("traffic cuda:0", "did you mean --device cuda:0?"),
        ("doctor --machine", "linkgauge doctor --machine needs NAME|FILE.yml, such as dgx-h200-8"),
        ("run --samples", "linkgauge run --samples needs N"),
        ("run --gpu 0", "has no option --gpu, did you mean '--device'?"),
        ("run --gpus 2", "has no option --gpus, did you mean '--device'?"),
        ("scale --ranks 2", "has no option --ranks, did you mean '--gpus'?"),
        ("run -n 5", "has no option -n, did you mean '--samples'?"),
        ("latency -n 5", "has no option -n, did you mean '--iterations'?"),
        ("run --bufferSize 1", "has no option --bufferSize, did you mean '--size'?"),
        ("run --quiet", "2> /dev/null"),
        ("compare --baseline kept --current x", "linkgauge compare BEFORE AFTER and linkgauge g"),
        ("run --no-color", "write NO_COLOR=1 before linkgauge"),
        ("history prune --force", "did you mean '--yes'?"),
        ("report --pdf", "linkgauge report -o report.pdf writes it"),
        ("run --warmup 3", "each cell warms up by itself"),
        ("run --format json", "did you mean '--json'?"),
        ("run -t device_local_copy", "write the name alone: linkgauge run BENCHMARK"),
        ("run --list", "linkgauge list shows all benchmarks"),
        ("baseline kept --out b.json", "did you mean '-o'?"),
        ("check --timeout 60", "did you mean '--under'?"),
        ("run d2d",
         "'d2d': --prefix device_to_device selects 14 benchmarks, such as device_to_device"),
        ("run d2d", "; or did you mean --only-d2d?"),
        ("run h2d_memcpy", "--prefix host_to_device_memcpy selects 2 benchmarks"),
        ("run bidirectional", "there are host_to_device_bidirectional_memcpy_ce, device_to_"),
        ("run quick", "did you mean --profile quick?"),
        ("run ppu-8", "did you mean --machine ppu-8?"),
        ("run cuda:0", "did you mean --device cuda:0?"),
        ("run help", "did you mean --help?"),
        ("run inference", "did you mean linkgauge ai inference?"),
        ("run all_reduce_perf", "did you mean linkgauge as all_reduce_perf?"),
        ("latency cuda:0 cuda:1", "did you mean --device cuda:0?"),
        ("nvbandwidth", "unknown command 'nvbandwidth', did you mean 'linkgauge as nvbandwidth'?"),
        ("bench", "unknown command 'bench', did you mean 'linkgauge run'?"),
        ("help runn", "unknown command 'runn', did you mean 'run'?"),
        ("-v list", "-v goes with --version: linkgauge --version -v"),
        ("run --machine ppu-8 --fault slow sim:3", "for example --fault 'slow sim:0 rate=25%'"),
        ("run --machine ppu-8 --fault 'slow sim:9 rate=25%'", "fault 'slow sim:9 rate=25%': no si"),
        ("run --machine ppu-8 --machine ring-8", "--machine ppu-8 --machine ring-8: give only one"),
        ("history list --history mysql://x:hidden@y/z", "no history can be in mysql"),
        *((f"{takes_label} --label ../../etc", "'../../etc' is no label") for takes_label in (
            "copy 'sim:0 -> sim:1 by ce' --machine ppu-8", f"{WATCH} device_local_copy --probes 1",
            "vary device_local_copy --machine ppu-8 --env NAME=1,2", "check --machine ppu-8",
            "latency --machine ppu-8", "scale --machine ppu-8", "traffic --machine ppu-8",
        )),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(words, says, kept):
    before = {*kept.rglob("*")}
    done = called(*shlex.split(words), cwd=kept, LINKGAUGE_HISTORY="h.db", PATH=str(kept))
    assert (done.returncode, done.stdout) == (2, "")
    first, *more = done.stderr.splitlines()
    assert says in first
    assert first.startswith("linkgauge: ")
    assert not more or more[1].lstrip().startswith("^"), "what was typed, and the place in it"
    assert "hidden" not in first
    assert {*kept.rglob("*")} <= before | {*kept.glob("h.db-*")}


@pytest.mark.parametrize(
    ("words", "usage"),
    [("help", "linkgauge [OPTIONS]"), ("help run", "linkgauge run [OPTIONS]")],
)
def test_help_is_a_command_too(words, usage):
    done = called(*words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {usage}")
    assert done.stdout == called(*words.split()[1:], "--help").stdout


@pytest.mark.parametrize("label", [" ", "../../etc", "a\nb", "\x1b[31m", "\u202ex", "x" * 65])
def test_what_is_no_label_is_refused(label, kept):
    done = called(*RUN[:-1], label, cwd=kept)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, line.isprintable()) == (2, True)
    what = "give 1 to 64 printable characters, and no '..' between slashes"
    assert line.endswith(f"is no label: {what}")
    with pytest.raises(InputError, match="is no label"):
        api.measure("sim:0 -> sim:1 by ce", machine="riscv-2gpu", label=label)


@pytest.mark.parametrize("label", ["feature/x", "Übung 1", "前", "a..b", "/", "=1"])
def test_a_label_is_kept_as_typed_and_its_folder_is_below_its_accelerator(label, tmp_path):
    done = called(*RUN[:-1], label, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("simulated-ppu-8/*/*/run.json")
    assert api.load(path).run.label == label


@pytest.mark.parametrize(
    "words",
    [
        "report kept -o {}.html",
        "export kept --csv -o {}.csv",
        "capture {}.tgz --backend host",
        "baseline kept -o {}.json",
        "baseline kept -o b.json --write-limits {}.yml",
        "gate --baseline kept --current kept --json -o {}.json",
        "run device_local_copy --machine ppu-8 --samples 1 --out {}",
    ],
)
def test_a_file_that_cannot_be_written_is_named(words, kept):
    place = "/proc/none/x" if words.startswith("run") else "file/x"
    done = called(*shlex.split(words.format(place)), cwd=kept)
    assert done.returncode == 2, done.stdout + done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("linkgauge: cannot write ")
    assert place in line


@pytest.mark.parametrize(
    ("code", "kind"), [(2, InputError), (21, InputError), (30, InputError), (28, ResultsError)]
)
def test_only_a_disk_that_is_full_or_fails_is_no_bad_input(code, kind):
    error = unwritable("x", OSError(code, os.strerror(code)))
    assert type(error) is kind
    assert str(error) == f"cannot write x: {os.strerror(code)}"


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [("prometheus_client", "exporter", "exporter --machine riscv-2gpu"),
     ("pyarrow", "analysis", "export of --parquet -o x")],
)  # fmt: skip
def test_an_extra_that_is_missing_is_named(monkeypatch, kept, package, extra, words):
    monkeypatch.setitem(sys.modules, package, None)
    done = called(*words.split(), cwd=kept)
    assert done.returncode == 2
    install = f"{sys.executable} -m pip install 'linkgauge[{extra}]' (or {package} alone)"
    assert done.stderr == f"linkgauge: {package} is not installed: {install}\n"
