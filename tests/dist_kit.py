"""Packages: making them, and what a wheel is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

import linkgauge

ROOT = Path(__file__).parents[1]
C_LIBRARY = {"libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0",
             "ld-linux-aarch64.so.1", "ld-linux-riscv64-lp64d.so.1",
             "ld-linux-x86-64.so.2"}  # fmt: skip

GLIBC = {"x86_64": 28, "aarch64": 28, "riscv64": 31}
"""The newest glibc 2.x that a wheel may ask for. RHEL 8 has 2.28; RISC-V has no name below 2.31."""


def dist(*cpus):
    return subprocess.run(
        [ROOT / "tools/dist", *cpus], capture_output=True, text=True, check=False, timeout=1800,
        env={**os.environ, "PYTHON": sys.executable},
    )  # fmt: skip


def wheel_of(cpu):
    """The wheel of this version and this Python in dist/."""
    python = "cp312-abi3" if sys.version_info >= (3, 12) else "cp311-cp311"
    (wheel,) = (ROOT / "dist").glob(f"linkgauge-{linkgauge.__version__}-{python}-*_{cpu}.whl")
    return wheel


def module_of(wheel, folder):
    """The native module in a wheel, unpacked."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if "/_native" in name and ".so" in name)
        assert not [n for n in archive.namelist() if ".libs/" in n], "it brings a library along"
        return Path(archive.extract(name, folder))


def check_wheel(wheel, cpu, folder):
    """Its tag, and what its module is and needs."""
    platforms = wheel.stem.split("-")[4].split(".")
    named = [re.fullmatch(rf"manylinux(?:_2_(\d+)|2014)_{cpu}", name) for name in platforms]
    assert all(named), platforms
    assert all(int(one[1]) <= GLIBC[cpu] for one in named if one[1]), platforms
    path = module_of(wheel, folder)
    abi = "abi3" if sys.version_info >= (3, 12) else f"cpython-311-{cpu}-linux-gnu"
    assert path.name == f"_native.{abi}.so"
    with path.open("rb") as file:
        elf = ELFFile(file)
        machine = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64", "riscv64": "EM_RISCV"}[cpu]
        assert elf["e_machine"] == machine
        wanted = elf.get_section_by_name(".gnu.version_r")
        versions = [aux.name for _, those in wanted.iter_versions() for aux in those]
        dynamic = elf.get_section_by_name(".dynamic")
        needed = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
        symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
    missing = {one.name for one in symbols if one["st_shndx"] == "SHN_UNDEF"}
    assert needed <= C_LIBRARY
    asked = [int(name.split(".")[1]) for name in versions if name.startswith("GLIBC_2.")]
    assert asked
    assert max(asked) <= GLIBC[cpu]
    assert "PyInit__native" in {one.name for one in symbols} - missing
    # Of libraries that it does not name: a linker lets a module have such.
    assert [name for name in missing if name.startswith(("__atomic_", "_ZSt", "_ZNSt"))] == []
    return path
