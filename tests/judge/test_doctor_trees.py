"""What is set wrong in the files of a captured machine is found by name, and what is harmless is
not: eight H200s, as tests/data/machines has them."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from command_kit import called

HEALTHY = Path(__file__).parents[1] / "data/machines/dgx-h200-8.tgz"
GPU, EXPRESS = "sys/devices/pci0000:00/0000:00:01.1/0000:1b:00.0", 0x60
"""The first GPU, and where its PCI Express capability lies (tests/sim_tree/registers.py)."""
POLICY = "sys/module/pcie_aspm/parameters/policy"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("healthy")
    with tarfile.open(HEALTHY) as packed:
        packed.extractall(folder, filter="tar")
    return folder


@pytest.fixture(scope="module")
def before(healthy):
    return checks(healthy)


@pytest.fixture
def tree(healthy, tmp_path):
    return shutil.copytree(healthy, tmp_path, symlinks=True, dirs_exist_ok=True)


def checks(tree):
    done = called("doctor", "--root", tree, "--json")
    return {one["check"]: one for one in json.loads(done.stdout)["findings"]}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def register(tree, folder, offset, value):
    """Writes the low byte of a register of the capability."""
    path = tree / folder / "config"
    space = bytearray(path.read_bytes())
    space[EXPRESS + offset : EXPRESS + offset + 2] = value.to_bytes(2, "little")
    path.write_bytes(space)


def accelerator(tree, **changes):
    """Changes what the vendor's library says of the first GPU."""
    path = tree / "linkgauge/accelerators.json"
    first, *others = json.loads(path.read_text())
    path.write_text(json.dumps([first | changes, *others]))


def without_gpu(tree):
    (tree / "sys/bus/pci/devices/0000:1b:00.0").unlink()


WRONG = {
    "relaxed-ordering": lambda tree: register(tree, GPU, 0x08, 0x2927),
    "aspm": lambda tree: register(tree, GPU, 0x10, 2),
    "aspm above": lambda tree: register(tree, str(Path(GPU).parent), 0x10, 3),
    "aspm policy": lambda tree: write(tree / POLICY, "default performance [powersave]\n"),
    "bar1": lambda tree: accelerator(tree, bar1_bytes=256 << 20),
    "ecc-off": lambda tree: accelerator(tree, ecc=False),
    "power-limit": lambda tree: accelerator(tree, power_limit=450.0),
    "gone": without_gpu,
    "near-node": lambda tree: write(tree / GPU / "numa_node", "-1\n"),
    "smt": lambda tree: write(
        tree / "proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-1\n"
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_set_wrong_is_found(wrong, before, tree):
    name = wrong.partition(" ")[0]
    assert name not in before
    WRONG[wrong](tree)
    found = checks(tree)[name]
    assert found["severity"] in (("note",) if name == "smt" else ("warn", "fail"))
    assert found["remedy"]


@pytest.mark.parametrize(
    "harmless",
    [
        lambda tree: register(tree, GPU, 0x08, 0x2937),
        lambda tree: write(tree / POLICY, "[default] performance powersave powersupersave\n"),
        lambda tree: accelerator(tree, bar1_bytes=256 << 30, power_default=700.0),
    ],
)
def test_what_is_harmless_is_not(harmless, before, tree):
    harmless(tree)
    assert checks(tree) == before
