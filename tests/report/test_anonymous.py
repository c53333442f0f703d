"""An anonymised run lacks every name that was planted in it, and is still the same run."""

import io
import shutil
import subprocess
import sys
import tarfile

import msgspec
import pytest
from msgspec.structs import replace

from command_kit import called
from fakes import device, machine
from linkgauge.engine.runs import read_run
from linkgauge.machine import zstd
from linkgauge.model.inventory import Accelerator, Inventory
from linkgauge.model.notes import Remark
from linkgauge.model.ranks import Rank
from linkgauge.report.anonymous import RunAnonymizer
from linkgauge.report.files import write_run
from linkgauge.report.pack import pack_run
from report.samples import RUN

UUID = "4c4c4544-0042-3010-8054-b4c04f4d3233"
MAC = "3c:ec:ef:12:34:56"
SECRETS = (
    "hopper-07", "hopper-08", "corp.example.com", "mallory", "Project Zeus", "project-zeus",
    "SN-99-X7Q", UUID, "GPU-5fa1c0de-1111-2222-3333-444455556666", MAC, "10.20.30.40",
    "zeus-store", "limits of zeus", "t0ken", "rack B-17",
)  # fmt: skip
NOTE = (
    f"mallory@hopper-07.corp.example.com: cannot write /home/mallory/zeus-store/x.json "
    f"(Serial Number: SN-99-X7Q, {MAC}, 10.20.30.40), label Project Zeus, by limits of zeus"
)

COMMAND = (
    "linkgauge", "run", "host_to_device_memcpy_ce", "--size", "64M", "--out",
    "/home/mallory/zeus-store", "--label", "Project Zeus", "--limits=limits of zeus",
)  # fmt: skip


def planted():
    """A run with every secret in several places."""
    card = replace(device(0, "x"), uuid="GPU-5fa1c0de-1111-2222-3333-444455556666")
    made = machine([card, device(1, "x")])
    made = replace(
        made,
        host=replace(made.host, hostname="hopper-07"),
        inventory=Inventory(
            accelerators=(Accelerator(memory="x:0", model="X", uuid=UUID),),
            stated={"site": "rack B-17", "soc": "X2"},
        ),
        ranks=(Rank(0, "hopper-07", 1), Rank(1, "hopper-08.corp.example.com", 2)),
    )
    first, *results = RUN.results
    cells = tuple(replace(cell, notes=(Remark(NOTE),), reason=NOTE) for cell in first.cells)
    surroundings = replace(RUN.settings.surroundings, environment={"API": "t0ken"})
    return replace(
        RUN,
        label="Project Zeus",
        command=COMMAND,
        machine=made,
        after=made.inventory,
        settings=replace(RUN.settings, surroundings=surroundings),
        results=(replace(first, cells=cells), *results),
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write_run(folder, planted())
    (folder / "numa_topology.txt").write_text(f"# {NOTE}\nnode 0 cpus: 0 1\n")
    (folder / "report.html").write_text(NOTE)
    (folder / "run.json.partial").write_text(NOTE)
    (folder / "link").symlink_to("/etc/passwd")
    return folder


def unpacked(content):
    """The members of an archive by name, where it is installed by another program than packed
    them."""
    if shutil.which("zstd"):
        unzip = subprocess.run(["zstd", "-dc"], input=content, capture_output=True, check=True)
        plain = unzip.stdout
    else:
        plain = zstd.Unpacked(io.BytesIO(content)).read(1 << 24)
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        return {one.name: (one, tar.extractfile(one).read()) for one in tar}


def texts(packed):
    return {name.partition("/")[2]: data.decode() for name, (_, data) in unpacked(packed).items()}


class TestPack:
    def test_holds_the_runs_own_files_as_they_are(self, folder):
        packed = pack_run(folder)
        assert packed.names == ("numa_topology.txt", "report.html", "run.json", "samples.csv")
        assert packed.left_out == ()
        assert texts(packed.content) == {n: (folder / n).read_text() for n in packed.names}

    def test_the_same_run_makes_the_same_archive(self, folder):
        first = pack_run(folder).content
        for path in folder.iterdir():
            if path.suffix == ".json":
                path.touch()
        assert pack_run(folder).content == first

    def test_members_are_sorted_of_nobody_and_as_old_as_the_run(self, folder):
        members = [member for member, _ in unpacked(pack_run(folder).content).values()]
        assert [member.name for member in members] == sorted(member.name for member in members)
        assert {member.name.partition("/")[0] for member in members} == {RUN.id}
        assert {(one.uid, one.gid, one.uname, one.gname) for one in members} == {(0, 0, "", "")}
        assert {member.mtime for member in members} == {1795292130}  # 2026-11-21T20:15:30Z

    def test_an_id_that_is_a_path_stays_inside(self, folder):
        write_run(folder, replace(planted(), id="../../etc/x"))
        assert {name.partition("/")[0] for name in unpacked(pack_run(folder).content)} == {"etc-x"}

    def test_is_read_as_the_run_itself(self, folder, tmp_path):
        path = tmp_path / "a.tar.zst"
        path.write_bytes(pack_run(folder).content)
        assert read_run(path) == read_run(folder)

    def test_without_the_package_the_extra_is_named(self, folder, monkeypatch):
        monkeypatch.setattr(zstd, "_own", lambda: None)
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(ImportError, match=r"pip install 'linkgauge\[pack\]'"):
            pack_run(folder)


class TestAnonymised:
    @pytest.fixture
    def files(self, folder):
        return texts(pack_run(folder, anonymous=True).content)

    @pytest.mark.parametrize("secret", SECRETS)
    def test_no_secret_is_left_in_any_file(self, secret, files, folder):
        before = "".join(path.read_text(errors="replace") for path in folder.glob("*.[tj]*"))
        assert secret == "project-zeus" or secret in before
        assert [name for name, text in files.items() if secret.lower() in text.lower()] == []

    def test_what_nothing_anonymises_is_left_out_and_named(self, folder, files):
        assert pack_run(folder, anonymous=True).left_out == ("report.html",)
        assert set(files) == {"run.json", "samples.csv", "numa_topology.txt"}

    def test_a_value_has_one_pseudonym_in_all_files(self, files):
        for pseudonym in ("user-1", "host-1", "label-1"):
            assert pseudonym in files["run.json"]
            assert pseudonym in files["numa_topology.txt"]
        assert '"hostname": "host-1"' in files["run.json"]
        assert '"host": "host-2"' in files["run.json"]

    def test_figures_and_names_of_links_stay(self, folder, tmp_path, files):
        (tmp_path / "run.json").write_text(files["run.json"])
        run, before = read_run(tmp_path / "run.json"), read_run(folder)
        assert run.command[:5] == ("linkgauge", "run", "host_to_device_memcpy_ce", "--size", "64M")
        assert run.command[-1] == "--limits=typed-2"
        assert (run.label, run.machine.inventory.stated["soc"]) == ("label-1", "X2")
        for ours, theirs in zip(run.results, before.results, strict=True):
            assert (ours.benchmark, ours.title) == (theirs.benchmark, theirs.title)
            for one, other in zip(ours.cells, theirs.cells, strict=True):
                assert replace(one, reason=None, notes=()) == replace(other, reason=None, notes=())
        assert files["samples.csv"] == (folder / "samples.csv").read_text()


def test_lines_of_the_kernels_log_lose_names_and_paths():
    text = RunAnonymizer(planted(), [NOTE]).text("NVRM: hopper-07 kernel: /data/zeus/x by mallory")
    assert text == "NVRM: host-1 kernel: /path-1 by user-1"


def test_words_that_are_no_paths_stay():
    text = "host:0/pageable at 55.2 GB/s, 1/2 of 16 GT/s; 0000:1b:00.0 ±1%/x, /sys/class/net"
    assert RunAnonymizer(RUN).text(text) == text


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    done = called(
        "copy", "host:0 -> sim:0 by ce", "--machine", "dgx-h200-8", "--samples", 6, "--out", out,
        "--label", "acme prod",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return next(out.glob("*/*/*"))


def test_a_journal_is_anonymised_line_by_line(simulated):
    packed = pack_run(simulated, anonymous=True)
    assert packed.names == ("journal.jsonl", "run.json", "samples.csv")
    files = texts(packed.content)
    assert "acme" not in "".join(files.values())
    assert str(simulated.parent) not in files["journal.jsonl"]
    kinds = [msgspec.json.decode(line)["record"] for line in files["journal.jsonl"].splitlines()]
    assert (kinds[0], kinds[-1]) == ("opened", "closed")


class TestCommand:
    def test_packs_and_what_it_packed_is_shown(self, simulated, tmp_path):
        done = called("pack", simulated, "--anonymize", "-o", "a.tar.zst", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "packed: a.tar.zst: journal.jsonl, run.json, samples.csv\n"
        shown = called("show", "a.tar.zst", cwd=tmp_path)
        *_, tally, kept = shown.stdout.splitlines()
        assert tally.startswith("1 measured: 1 ok, 0 low, 0 not judged SIMULATED")
        assert kept == "results: a.tar.zst"
        again = called("pack", simulated, "-o", "a.tar.zst", cwd=tmp_path)
        assert (again.returncode, "exists" in again.stderr) == (2, True)

    def test_exports_to_a_file_or_to_stdout(self, simulated, tmp_path):
        done = called("export", simulated, "--csv")
        assert done.stdout.splitlines()[1].split(",")[1:4] == ["acme prod", "copy", "sim"]
        done = called("export", simulated, "--samples", "--csv", "-o", tmp_path / "s.csv")
        assert done.stdout == f"exported: {tmp_path / 's.csv'}\n"
        assert (tmp_path / "s.csv").read_text() == (simulated / "samples.csv").read_text()
