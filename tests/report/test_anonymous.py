"""An anonymised run lacks every name that was planted in it, and is still the same run."""

import io
import shutil
import subprocess
import tarfile

import msgspec
import pytest
from msgspec.structs import replace

from command_kit import called
from fakes import device, machine
from linkgauge.engine.kept.runs import read_run
from linkgauge.model.hardware.inventory import Accelerator, Inventory
from linkgauge.model.kernel_log import KernelLog, LogLine
from linkgauge.model.notes import Remark
from linkgauge.model.ranks import Rank
from linkgauge.report.files import write_run
from page_kit import files
from report.samples import RUN

RUN_FILES = ("run.json", "samples.bin", "samples.csv")
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
KERNEL = (
    "NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, name=python, GPU has fallen off the bus.",
    "pcieport 0000:00:1c.0: AER: Correctable error message received from 0000:01:00.0",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
)
"""Lines of a log that name nobody."""


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


def packed(folder, *options):
    """The members of what `linkgauge pack` wrote, and what it said."""
    file = folder.parent / "packed.tar.zst"
    file.unlink(missing_ok=True)
    done = called("pack", folder, *options, "-o", file)
    assert (done.returncode, done.stderr) == (0, "")
    if not shutil.which("zstd"):
        pytest.skip("needs zstd: sudo apt-get install zstd")
    plain = subprocess.run(["zstd", "-dc", file], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        members = {one.name: (one, text_of(tar.extractfile(one).read())) for one in tar}
    return members, done.stdout


def text_of(content):
    return content.decode(errors="surrogateescape")


def texts(members):
    return {name.partition("/")[2]: text for name, (_, text) in members.items()}


def test_a_pack_holds_the_runs_own_files_as_they_are(folder):
    members, _ = packed(folder)
    found = texts(members)
    assert list(found) == ["numa_topology.txt", "report.html", *RUN_FILES]
    assert found == {name: text_of((folder / name).read_bytes()) for name in found}
    assert {name.partition("/")[0] for name in members} == {RUN.id}
    heads = [member for member, _ in members.values()]
    assert {(one.uid, one.gid, one.uname, one.gname) for one in heads} == {(0, 0, "", "")}
    assert {one.mtime for one in heads} == {1795292130}  # 2026-11-21T20:15:30Z
    archive = folder.parent / "packed.tar.zst"
    first = archive.read_bytes()
    (folder / "run.json").touch()
    packed(folder)
    assert archive.read_bytes() == first, "the same run makes the same archive"
    assert read_run(archive) == read_run(folder)
    # An id that is a path stays inside.
    write_run(folder, replace(planted(), id="../../etc/x"))
    assert {name.partition("/")[0] for name in packed(folder)[0]} == {"etc-x"}


class TestAnonymised:
    def test_no_secret_is_left_and_a_value_has_one_pseudonym_in_all_files(self, folder):
        members, said = packed(folder, "--anonymize")
        files = texts(members)
        assert set(files) == {*RUN_FILES}
        for name in ("report.html", "numa_topology.txt"):
            assert name in said, "what nothing declares is left out and named"
        before = "".join(path.read_text(errors="replace") for path in folder.glob("*.[tj]*"))
        assert [one for one in SECRETS if one not in before] == ["project-zeus"]
        after = "".join(files.values()).lower()
        assert [one for one in SECRETS if one.lower() in after] == []
        assert "label-1" in files["run.json"]
        assert '"hostname": "host-1"' in files["run.json"]
        assert '"host": "host-2"' in files["run.json"]

    def test_figures_and_names_of_links_stay(self, folder, tmp_path):
        files = texts(packed(folder, "--anonymize")[0])
        for name in RUN_FILES:
            (tmp_path / name).write_bytes(files[name].encode(errors="surrogateescape"))
        run, before = read_run(tmp_path / "run.json"), read_run(folder)
        assert run.command[:5] == ("linkgauge", "run", "host_to_device_memcpy_ce", "--size", "64M")
        assert run.command[-1] == "--limits=typed-2"
        assert (run.label, run.machine.inventory.stated["soc"]) == ("label-1", "X2")
        for ours, theirs in zip(run.results, before.results, strict=True):
            assert (ours.benchmark, ours.title) == (theirs.benchmark, theirs.title)
            for one, other in zip(ours.cells, theirs.cells, strict=True):
                assert replace(one, reason=None, notes=()) == replace(other, reason=None, notes=())
        assert files["samples.csv"] == (folder / "samples.csv").read_text()

    def test_a_shared_page_and_its_card_have_no_secret_and_fit_a_ticket(self, folder, monkeypatch):
        for most in (1_000_000, 30_000):
            monkeypatch.setattr("linkgauge.rooms.share.page.MOST_BYTES", most)
            done = called("share", folder, "-o", file := folder.parent / f"{most}.html")
            lines, page = done.stdout.splitlines(), file.read_text()
            assert (done.returncode, done.stderr, len(lines)) == (0, "", 6)
            assert max(map(len, lines)) <= 100
            assert len(page.encode()) < most
            assert ("room for All figures" in page) == (most == 30_000)
            shown = "".join((done.stdout, page, *map(bytes.decode, files(page).values()))).lower()
            assert [one for one in SECRETS if one.lower() in shown] == []
            assert "label-1" in page

    def test_a_line_of_the_kernel_is_formed_anew(self, folder):
        lines = tuple(LogLine(1.0, text, "xid", "0000:1b:00.0", code=79) for text in KERNEL)
        write_run(folder, replace(planted(), kernel_log=KernelLog(lines)))
        found = texts(packed(folder, "--anonymize")[0])["run.json"]
        assert found.count('"text": "xid 79 0000:1b:00.0"') == len(KERNEL)
        assert [text for text in KERNEL if text in found] == []

    @pytest.mark.parametrize(
        ("reason", "kind", "shown"),
        [
            (f"cuMemcpyAsync: CUDA_ERROR_LAUNCH_FAILED ({NOTE})", "call",
             "a call failed: cuMemcpyAsync, CUDA_ERROR_LAUNCH_FAILED"),
            ("the worker of mallory ended by SIGKILL", "crash",
             "a signal ended the worker: SIGKILL"),
            (NOTE, "unsupported", "the machine or the backend cannot do this"),
            ("clMallory: MALLORY_ERROR_OF_ZEUS", "call", "a call failed"),
            (NOTE, None, "the reason is left out here"),
        ],
    )  # fmt: skip
    def test_a_reason_is_formed_anew_of_the_outcome_and_of_calls(self, folder, reason, kind, shown):
        first, *others = planted().results
        cells = tuple(replace(cell, reason=reason, kind=kind) for cell in first.cells)
        write_run(folder, replace(planted(), results=(replace(first, cells=cells), *others)))
        assert f'"{shown}"' in texts(packed(folder, "--anonymize")[0])["run.json"]


def test_a_journal_is_anonymised_line_by_line(tmp_path):
    done = called(
        "copy", "host:0 -> sim:0 by ce", "--machine", "dgx-h200-8", "--samples", 6,
        "--out", tmp_path / "out", "--label", "acme prod",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = next((tmp_path / "out").glob("*/*/*"))
    members, said = packed(folder, "--anonymize")
    assert said.endswith(f"packed.tar.zst: journal.jsonl, {', '.join(RUN_FILES)}\n")
    files = texts(members)
    assert "acme" not in "".join(files.values())
    assert str(folder.parent) not in files["journal.jsonl"]
    kinds = [msgspec.json.decode(line)["record"] for line in files["journal.jsonl"].splitlines()]
    assert (kinds[0], kinds[-1]) == ("opened", "closed")
    again = called("pack", folder, "-o", folder.parent / "packed.tar.zst")
    assert (again.returncode, "exists" in again.stderr) == (2, True)
