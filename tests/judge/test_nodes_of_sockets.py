"""A host whose sockets have several nodes, and that is told no distances, as guests are: pairs of
nodes within a socket and across have rates of their own, and none of them is called slow."""

import pytest
import yaml

from judge_kit import run_of
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge

ACROSS = {"all": {"every": "host:0..3", "to": "host:4..7"},
          "level": {"pairs": [[f"host:{n}", f"host:{n + 4}"] for n in range(4)]}}  # fmt: skip
READS = "host_to_host_memcpy_read_cpu", "host_to_host_memcpy_write_cpu"


def found(across, seed=1, faults=()):
    about = {
        "source": "a guest on two sockets of four nodes each", "noise": "0.5%", "seed": seed,
        "host": {"cpu_model": "AMD EPYC 9654", "sockets": 2, "hypervisor": "kvm", "nodes": [
            {"count": 8, "cpus": 24, "memory": "96G", "rate": "105 GB/s"}]},
        "link_kinds": {"within": {"kind": "socket", "rate": "90 GB/s"},
                       "across": {"kind": "socket", "rate": "60 GB/s"}},
        "links": [{"kind": "within", "mesh": "host:0..3"}, {"kind": "within", "mesh": "host:4..7"},
                  {"kind": "across", **ACROSS[across]}],
    }  # fmt: skip
    run = judge(run_of("guest", yaml.safe_dump(about), *READS, samples=3, faults=faults))
    findings = diagnose(evidence_of(run))
    grave = [each.subject for each in findings if each.severity in ("fail", "warn")]
    return grave, outcome_of(run).code


@pytest.mark.parametrize("across", ACROSS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pairs_of_one_way_are_compared_with_each_other(across, seed):
    assert found(across, seed) == ([], 0)


@pytest.mark.parametrize("part", ["host:3", "host:1-host:2", "host:1-host:6"])
def test_what_is_slow_there_is_still_named(part):
    assert found("all", faults=(f"slow {part} rate=50%",)) == ([part], 1)
