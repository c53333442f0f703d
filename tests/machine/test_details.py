"""A host of which nothing can be read says why, and no garbled file raises."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.machine.captures.archive import read_archive
from linkgauge.machine.tree import Captured, Disk
from machine_kit import DMI, HUGE, NODE, captured, host_of, subjects

MACHINES = Path(__file__).parents[1] / "data/machines"
X86, GRACE, RISCV = (
    read_archive(MACHINES / f"{name}.tgz").files for name in ("x86-server", "grace", "riscv-board")
)
"""What tests/transcripts/captured shows of each."""
OF_HOST = ("proc/", "sys/class/dmi/", "sys/devices/system/", "sys/fs/", "sys/kernel/")


def test_a_machine_with_nothing_says_what_it_could_not_read_and_why(tmp_path):
    details = host_of(Disk(tmp_path))
    assert details == host_of(Captured({}))
    values = {name: getattr(details, name) for name in details.__struct_fields__}
    assert {name for name, value in values.items() if value} == {"unknown"}
    assert subjects(details) == {
        "sockets", "cores", "instruction set", "caches", "NUMA distances", "huge pages",
        "transparent huge pages", "frequency governor", "kernel command line", "allowed CPUs",
        "allowed nodes", "CPU steal", "hypervisor", "memory limit", "locked memory limit", "IOMMU",
        "DIMM rate", "kernel", "system", "processor", "architecture", "memory",
    }  # fmt: skip


PLACES = sorted(
    {*(path for path in (*X86, *GRACE, *RISCV) if path.startswith(OF_HOST)), DMI,
     "proc/self/cpuset", "proc/1/cgroup", "proc/1/environ",
     f"{HUGE}/hugepages-99999999999999kB/nr_hugepages", f"{NODE}/node99999/distance",
     "sys/firmware/dmi/entries/17-0/raw", "sys/devices/system/edac/mc/mc0/dimm0/dimm_location"}
)  # fmt: skip
GARBLED = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="0123456789-,. :/\n\0kKMabcx[]", max_size=60).map(str.encode),
    st.sampled_from([b"9" * 5000, b"-1", b"0::/\0x", b"0::/" + b"a/" * 3000, b"isa:", b"cpu"]),
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(PLACES), GARBLED, max_size=12))
def test_garbled_files_never_raise(files):
    details = host_of(captured(X86, files))
    assert details.steal is None or 0 <= details.steal <= 1
    assert details.memory_rate is None or details.memory_rate > 0
