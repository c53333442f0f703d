"""The transfers of benchmarks over network interfaces."""

import pytest

from fakes import machine
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import NETWORK
from linkgauge.model.ranks import Rank

LO = Interface(name="lo", up=True, kind="loopback", addresses=("127.0.0.1",))
SIZE = 1 << 20
OVER_NICS = [row for row in CATALOG.values() if row.name.startswith(("nic_", "rdma_"))]


def ranks(count, nics=1):
    """Hosts with so many interfaces each, beside their loopbacks."""

    def eth(rank, number):
        return Interface(name=f"eth{number}", up=True, addresses=(f"10.{number}.0.{rank}",))

    return tuple(
        Rank(rank, f"node{rank}", 1, nics=(LO, *(eth(rank, n) for n in range(nics))))
        for rank in range(count)
    )


def fabric(known, backend=NETWORK, **more):
    devices = tuple(Device(f"host:0@{one.number}", "host memory", SIZE, SIZE) for one in known)
    return DeviceSet(backend, machine([]).host.nodes, devices, ranks=known, **more)


def cells(name, known):
    laid_out = CATALOG[name].lay_out(fabric(known))
    assert laid_out.reason is None
    return {(cell.row, cell.column): str(cell) for cell in laid_out.cells}


def test_pairs_one_by_one():
    assert cells("nic_tcp", ranks(2)) == {
        ("0", "1"): "host:0@0 -> host:0@1 by nic:1.tcp",
        ("1", "0"): "host:0@1 -> host:0@0 by nic:1.tcp",
    }
    assert cells("nic_tcp_streams", ranks(2))["0", "1"].endswith("nic:1.tcp*8")
    both = "host:0@0 -> host:0@1 by nic:1.tcp & host:0@1 -> host:0@0 by nic:1.tcp"
    assert cells("nic_tcp_bidirectional", ranks(2))["0", "1"] == both


def test_a_ring_for_each_interface():
    found = cells("nic_tcp_ring", ranks(3, nics=2))
    assert len(found) == 6
    assert found["2->0", "nic:2"] == "host:0@2 -> host:0@0 by nic:2.tcp"


def test_a_bisection_is_a_ring_of_half_the_ranks():
    assert {row for row, _ in cells("nic_tcp_bisection", ranks(4))} == {
        "0->2", "1->3", "2->0", "3->1"
    }  # fmt: skip


def test_all_to_all_has_every_interface_and_rails_only_those_of_one_number():
    all_to_all = cells("nic_tcp_all_to_all", ranks(3, nics=2))
    assert len(all_to_all) == 6 * 4
    far = "host:0@0 -> host:0@1 by nic:1.tcp to nic:2"
    assert all_to_all["0 nic:1", "1 nic:2"] == far
    rails = cells("nic_tcp_rails", ranks(3, nics=2))
    assert len(rails) == 2 * 6
    assert all(row.split()[1] == column.split()[1] for row, column in rails)


def test_a_rank_without_an_interface_is_named():
    lonely = (*ranks(1), Rank(1, "node1", 2, nics=(LO,)))
    for row in (row for row in OVER_NICS if row.kind != "rdma"):
        assert (
            "rank 1 (node1, process 2) has no network interface"
            in row.lay_out(fabric(lonely)).reason
        )


def test_rdma_takes_the_interfaces_that_have_it():
    plain, fast = (Interface(name=name, up=True, rdma=rdma, addresses=(name,))
                   for name, rdma in (("eth0", None), ("ib0", "mlx5_0")))  # fmt: skip
    able = tuple(Rank(number, f"node{number}", 1, nics=(LO, plain, fast)) for number in (0, 1))
    assert cells("nic_rdma", able)["0", "1"] == "host:0@0 -> host:0@1 by nic:2.rdma"
    reason = CATALOG["nic_rdma"].lay_out(fabric(ranks(2))).reason
    assert "rank 0 (node0, process 1) has no network interface that is up" in reason


def eth(name, address, **more):
    return Interface(name=name, up=True, addresses=(address,), **more)


def test_a_bridge_that_every_machine_has_reaches_none():
    bridge = eth("docker0", "172.17.0.1")
    known = (Rank(n, f"node{n}", 1, nics=(LO, bridge, eth("e", f"10.0.0.{n}"))) for n in (0, 1))
    assert all(text.endswith("by nic:2.tcp") for text in cells("nic_tcp", (*known,)).values())


def test_ranks_of_one_machine_use_its_loopback():
    here = tuple(Rank(n, "node", n, nics=(LO, eth("e", "10.0.0.1"))) for n in (0, 1))
    assert all(text.endswith("by nic:0.tcp") for text in cells("nic_tcp", here).values())


def test_the_fastest_is_the_usual_one_and_of_equals_that_near_the_memory():
    def able(number):
        names = {"a": {"speed": 1e9}, "b": {"speed": 50e9, "node": 1},
                 "c": {"speed": 50e9, "node": 0}}  # fmt: skip
        nics = (eth(name, f"10.{at}.0.{number}", **more) for at, (name, more) in
                enumerate(names.items()))  # fmt: skip
        return Rank(number, f"node{number}", 1, nics=(LO, *nics))

    assert cells("nic_tcp", (able(0), able(1)))["0", "1"].endswith("by nic:3.tcp")


class TestBetweenGpus:
    def over(self, known, gpus=None, name="nic_rdma_gpus"):
        hosts = fabric(known)
        found = tuple(Device(f"cuda:{n}@{n}", "GPU", SIZE, SIZE, near=n) for n in range(len(known)))
        beside = DeviceSet("cuda", hosts.nodes, found if gpus is None else gpus, ranks=known)
        (chosen,) = CATALOG[name].over([hosts, beside], ())
        return CATALOG[name].lay_out(chosen)

    def ranks(self, *steps):
        """Two, with interfaces so many steps from their GPUs, the last of which is the fastest."""
        nics = tuple(
            Interface(name=f"ib{n}", up=True, rdma=f"mlx5_{n}", addresses=(f"10.0.0.{n}",),
                      speed=1e9 * n, node=n, steps=far)
            for n, far in enumerate(steps)
        )  # fmt: skip
        return tuple(Rank(number, f"node{number}", 1, nics=nics) for number in (0, 1))

    def test_each_goes_by_the_interface_next_to_it(self):
        laid_out = self.over(self.ranks(6, 2, 4))
        assert laid_out.backend == NETWORK
        assert [str(cell) for cell in laid_out.cells] == [
            "cuda:0@0 -> cuda:1@1 by nic:1.rdma", "cuda:1@1 -> cuda:0@0 by nic:1.rdma"
        ]  # fmt: skip

    def test_where_no_way_is_known_by_the_one_on_its_node(self):
        (there, _) = self.over(self.ranks(None, None, None)).cells
        assert str(there) == "cuda:0@0 -> cuda:1@1 by nic:0.rdma to nic:1"

    def test_of_equals_by_the_one_on_its_node_and_then_the_fastest(self):
        (there, back) = self.over(self.ranks(9, None, 9, 9)).cells
        assert str(there).endswith("by nic:0.rdma to nic:3")
        assert str(back).endswith("by nic:3.rdma to nic:0")

    @pytest.mark.parametrize("there", [0, 1])
    def test_each_rank_needs_one(self, there):
        gpus = tuple(Device(f"cuda:{n}@{n}", "GPU", SIZE, SIZE) for n in range(there))
        for name in ("nic_rdma_gpus", "nic_ucx_gpus"):
            assert "needs a GPU in each rank" in self.over(self.ranks(1), gpus, name).reason


def test_perftests_table_has_host_and_gpu_memory():
    fast = Interface(name="ib0", up=True, rdma="mlx5_0", addresses=("10.0.0.1",))
    able = tuple(Rank(number, f"node{number}", 1, nics=(LO, fast)) for number in (0, 1))
    laid_out = CATALOG["rdma_write_bw"].lay_out(fabric(able))
    assert {(cell.row, cell.column): cell.operation for cell in laid_out.cells} == {
        (row, column): f"ib_write_bw{told}"
        for row in ("0->1", "1->0")
        for column, told in (("host", ""), ("GPU, peermem", " --use_cuda"),
                             ("GPU, dmabuf", " --use_cuda_dmabuf"))
    }  # fmt: skip


@pytest.mark.parametrize("row", OVER_NICS, ids=lambda row: row.name)
def test_without_ranks_the_launch_is_shown(row):
    reason = row.lay_out(fabric((), backend="none")).reason
    assert f"mpiexec -n 2 linkgauge run {row.name}" in reason
    assert row.lay_out(fabric(ranks(1))).reason == "needs two ranks"
