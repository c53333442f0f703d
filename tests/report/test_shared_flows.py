"""Six flows in which names are planted, of hosts, people, places and programs: what is shared of
them has none."""

import re
from pathlib import Path

from msgspec.structs import replace

from command_kit import called
from linkgauge.engine.kept.runs import read_run
from linkgauge.machine.captures.archive import read_files
from linkgauge.machine.captures.capture import capture
from linkgauge.model.counters import Load
from linkgauge.report.files import write_run
from machine_kit import captured, seen
from page_kit import files

PLANTED = re.compile(r"zebra|alice|hunter2|frankfurt|b-17|471147|uid_1007", re.IGNORECASE)
HOSTS = {"zebranode7": 55.0, "zebranode8": 27.1, "alicebox": 55.2, "lab-zebra-9": 55.1}
TABLE = """\
nvbandwidth Version: v0.8
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2         3
 0     55.10     {0:.2f}     55.00     55.30
SUM host_to_device_memcpy_ce 220.00
"""
LOG = """\
alice@zebra7:~$ export WANDB_API_KEY=zebra0123456789
ZEBRAMISSED token=hunter2
zebra7:1:1 [0] NCCL WARN Missing links for user alice (alice@acme-zebra.example) in /home/alice/x
zebra7:1:1 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to bondzebra
#  Rank  0 Group  0 Pid  1000 on zebra7 device  0 [0x10] NVIDIA A100-SXM-64GB
#  Rank  1 Group  0 Pid  1001 on zebra7 device  1 [0x18] NVIDIA A100-SXM-64GB
#       size         count      type   redop    root     time   algbw   busbw #wrong
    67108864      16777216     float     sum      -1     1017   66.00   66.00      0
   268435456      67108864     float     sum      -1     3781   71.00   71.00      0
"""
STATED = """\
host: zebrahost9
soc: X2800-v1
location: Zebra Datacenter Frankfurt
customer: Zebra Corp
rack: B-17
contact: alice@zebra.example
"""
PPU = Path(__file__).parents[2] / "src/linkgauge/backends/sim/machines/ppu-2x2.yml"


def planted_in(folder):
    """What was planted, and is in what is shared of the folder."""
    page = folder.parent / "x.html"
    done = called("share", folder, "-o", page)
    archive = folder.parent / "x.tar.zst"
    packed = called("pack", folder, "--anonymize", "-o", archive)
    assert (done.returncode, packed.returncode) == (0, 0), done.stderr + packed.stderr
    text = page.read_text()
    shown = [done.stdout, text, *map(bytes.decode, files(text).values())]
    shown += [one.decode(errors="replace") for one in read_files(archive, "").values()]
    page.unlink()
    archive.unlink()
    return {each for one in shown for each in PLANTED.findall(one)}, done.stdout, text


def test_hosts_that_are_judged_together_have_pseudonyms(tmp_path):
    lines = [
        f"{host}: {line}"
        for host, figure in HOSTS.items()
        for line in TABLE.format(figure).splitlines()
    ]
    (tmp_path / "hosts.log").write_text("\n".join(lines))
    called("judge", tmp_path / "hosts.log", "--out", tmp_path / "out")
    folders = sorted((tmp_path / "out").glob("*/*/*"))
    assert len(folders) == len(HOSTS)
    for folder in folders:
        found, card, text = planted_in(folder)
        assert found == set()
        (culprit,) = set(re.findall(r"finding: (host-[1-4]): 1 of 4 figures are below", card))
        assert culprit in text


def test_lines_and_warnings_of_tools_are_left_out(tmp_path):
    (tmp_path / "alice.log").write_text(LOG)
    called("judge", tmp_path / "alice.log", "--out", tmp_path / "out")
    (folder,) = (tmp_path / "out").glob("*/*/*")
    before = (folder / "run.json").read_text()
    assert all(one in before for one in ("WANDB_API_KEY=zebra", "bondzebra", "acme-zebra"))
    found, card, _ = planted_in(folder)
    assert found == set()
    assert "2 × NVIDIA A100-SXM-64GB" in card


def test_what_a_person_states_of_a_machine_and_its_files_name_go(tmp_path):
    (tmp_path / "hardware.yml").write_text(STATED)
    (tmp_path / "zebramachine.yml").write_bytes(PPU.read_bytes())
    called(
        "run", "device_local_copy", "--machine", tmp_path / "zebramachine.yml", "--samples", 3,
        "--hardware", tmp_path / "hardware.yml", "--label", "for alice", "--out", tmp_path / "out",
    )  # fmt: skip
    (folder,) = (tmp_path / "out").glob("*/*/*")
    found, card, text = planted_in(folder)
    assert found == set()
    assert card.startswith("machine: SIMULATED machine-1, 4 × PPU (Zhenwu 810E)")
    assert "X2800-v1" in text


def test_other_peoples_programs_have_pseudonyms(tmp_path):
    asked = ("--machine", "vm-degraded", "--samples", 3, "--size", "64M", "--out", tmp_path)
    called("run", "host_to_device_memcpy_ce", "memory_stream_copy", *asked)
    (folder,) = tmp_path.glob("*/*/*")
    run = read_run(folder)
    load = Load(seconds=1.0, others=30.0, process="zebraproc", pid=8923)
    results = tuple(
        replace(result, cells=tuple(replace(cell, load=load) for cell in result.cells))
        for result in run.results
    )
    write_run(folder, replace(run, results=results))
    (folder / "journal.jsonl").unlink()
    assert "zebraproc" in (folder / "run.json").read_text()
    found, _, text = planted_in(folder)
    assert found == set()
    assert '"process-1"' in files(text)["run.json"].decode()


CAPTURED = {
    "proc/sys/kernel/hostname": "zebra7\n",
    "proc/cmdline": "ro user=alice owner=alice@zebra.example contact=+49-69-471147 iommu=pt\n",
    "proc/self/cgroup": "0::/slurm/uid_1007/job_471147/zebra.service\n",
    "linkgauge/tools/uname_-a.txt": "Linux zebra7 6.8.0 alice@buildzebra x86_64\n",
    "linkgauge/tools/lspci_-vvv.txt": "for alice.b@zebra.example\n",
    "linkgauge/software.json": '{"modules": {"zebra": {"version": "alice"}}}',
}


def test_a_capture_has_no_users_jobs_units_or_addresses_of_people():
    tree = captured(CAPTURED)
    kept = capture(tree, seen(tree), anonymous=True)
    everything = b"\n".join([*kept.files.values(), *map(str.encode, kept.files)]).decode()
    assert PLANTED.findall(everything) == []
    assert kept.text("proc/cmdline") == "ro (removed) (removed) (removed) iommu=pt"
