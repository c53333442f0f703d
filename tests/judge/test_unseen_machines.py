"""Verdicts on machines of shapes that no rule was made for (unseen_machines.yml); noise by kind of
link."""

import random

import pytest
import yaml
from msgspec.structs import replace

from campaign import RATES, SEED, UNSTEADY
from campaign import UNSEEN as MACHINES
from campaign_several import draw
from campaigns import trials
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.blame.cases import cases_of
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Finding, evidence_of
from linkgauge.judge.verdict import judge

WAYS = ("device_to_device_memcpy_read", "device_to_device_memcpy_write", "host_to_device_memcpy",
        "device_to_host_memcpy", "host_to_device_bidirectional_memcpy")  # fmt: skip
COPIES = (*(f"{way}_{by}" for way in WAYS for by in ("ce", "sm")), "device_local_copy")
TREE, UNSEEN = "fat-tree-64", "doctor, unseen machines: "


def warned(name, *faults, dice=None, names=COPIES, noise=(0.001, 0.15), blind=False, **host):
    """What is wrong by a run; `too noisy`: by its figures alone."""
    tree, dice = yaml.safe_load(yaml.safe_dump(MACHINES[name])), dice or random.Random(SEED)
    tree["host"] |= host
    tree |= {"noise": noise[0], "seed": dice.randrange(1 << 30)}
    for kind in tree["link_kinds"].values():
        kind["jitter"] = noise[0] * (noise[1] / noise[0]) ** dice.random()
    run = judge(run_of(name, yaml.safe_dump(tree), *names, faults=faults, samples=4))
    for result in run.results if blind else ():
        cells = tuple(replace(cell, expected=None, verdict="not judged") for cell in result.cells)
        run = replace(run, results=(*run.results[1:], replace(result, cells=cells)))
    return [each for each in diagnose(evidence_of(run)) if each.severity in ("fail", "warn")]


def test_healthy_machines_give_no_alarm(holds):
    dice, names = random.Random(SEED), [name for name in MACHINES if name != "both"]
    drawn = [warned(names[n % len(names)], dice=dice) for n in range(trials(f"{UNSEEN}alarm"))]
    holds(f"{UNSEEN}alarm", sum(map(bool, drawn)), len(drawn))


@pytest.mark.parametrize(("rate", "loss"), [(0.95, "5%"), (0.97, "3%")])
def test_a_small_loss_of_a_device_is_named(rate, loss, holds):
    dice, right, count = random.Random(SEED), 0, trials(f"{UNSEEN}a loss of {loss}")
    for _ in range(count):
        name, part = dice.choice(("cube", "torus", "quad", "bridged")), f"sim:{dice.randrange(6)}"
        found = warned(name, f"slow {part} rate={rate}", dice=dice, noise=(0.01, 0.01), blind=True)
        right += [f.subject.partition(" ")[0] for f in found if f.check == "slow"] == [part]
    holds(f"{UNSEEN}a loss of {loss}", right, count)


@pytest.mark.parametrize("faults", [2, 3])
def test_several_faults_are_all_named_and_nothing_else_fails(faults, holds):
    name, dice = f"{UNSEEN}{faults} faults", random.Random(SEED)
    kinds, names = (*RATES, *UNSTEADY, "flip"), [*MACHINES][:6]
    drawn = [draw(dice.choices(kinds, k=faults), n, names) for n in range(trials(name))]
    print([each for each in drawn if not each.is_whole])
    holds(name, sum(all(each.named) for each in drawn), len(drawn))
    holds(f"{name}, a false fail", sum(bool(each.wrong) for each in drawn), len(drawn))


@pytest.mark.parametrize(
    ("machine", "noisy", "fault", "part"),
    [
        # Copies by copy engines are bounded by something else.
        ("islands-2x4", "", "drift host:0-host:1 per_cell=-0.005", "host:0-host:1"),
        # In mid-run, beside links that vary as much.
        ("dgx-h200-8", "pcie5", "jitter sim:5 sigma=9% cells=100..", "sim:5"),
        # A single cell, of the device alone, tells it from its link.
        ("pcie-tree-8", "", "stall sim:6-plx1 every=3 for=0.08", "PCIe link of sim:6"),
    ],
)
def test_a_part_is_named_and_none_beside_it(machine, noisy, fault, part):
    tree = yaml.safe_load(load(machine)[1])
    for name, kind in tree["link_kinds"].items():
        kind["jitter"] = 0.12 if name == noisy else 0.001
    names = (*COPIES, *(f"host_to_host_memcpy_{what}_cpu" for what in ("read", "write", "copy")))
    found = diagnose(
        evidence_of(
            judge(
                run_of(
                    machine, yaml.safe_dump(tree), *names, faults=[fault], samples=9, size=64 << 20
                )
            )
        )
    )
    check = {"jitter": "scatter"}.get(kind := fault.partition(" ")[0], kind)
    grave = [(f.check, f.subject) for f in found if f.severity in ("fail", "warn")]
    assert grave == [(check, part)]


def said(tree, *names):
    """By check, what is found of a run all of whose cells miss a limit."""
    run = judge(run_of("drawn", yaml.safe_dump(tree), *names, samples=3))
    of = [(each, [replace(cell, kind="limit") for cell in each.cells]) for each in run.results]
    run = replace(run, results=tuple(replace(each, cells=tuple(cells)) for each, cells in of))
    return {f.check: f"{f.severity} {f.subject} {f.found}" for f in diagnose(evidence_of(run))}


def test_what_figures_do_not_show_is_said():
    tree, checks = (
        yaml.safe_load(load("dgx-h200-8")[1]),
        {"in-switch", "kernel-reads", "not-separate"},
    )
    assert not said(tree, "all_reduce", COPIES[0]).keys() & checks  # it reduces in its switch
    del tree["collectives"]
    tree["link_kinds"]["pcie5"]["sm_efficiency"]["read"] = 0.55
    found = said(tree, "all_reduce", *COPIES[4:6])
    assert [found[check].split(" ")[0] for check in sorted(checks)] == ["warn", "note", "unknown"]
    quad, square = (yaml.safe_load(yaml.safe_dump(MACHINES[name])) for name in ("quad", "square"))
    quad["link_kinds"]["uplink"]["speed"] = 16
    quad["devices"][0] |= {"peer_access": "none", "stages": True}
    assert "slow" not in said(quad, WAYS[0].replace("_m", "_bidirectional_m") + "_ce", COPIES[4])
    square["link_kinds"]["lane"] |= {"count": 4, "efficiency": {"read": 0.25, "write": 0.25}}
    assert "may be slow or not" in said(square, *COPIES[0:3:2])["slow"]


def test_what_belongs_together_is_one_finding():
    """Neither a host that one way shows to be sound, nor a GPU behind an IOMMU, is to blame."""
    assert not warned("both", names=COPIES[4:], noise=(0.001, 0.001))
    wrong = warned("quad", "flip sim:3", names=COPIES[:1], iommu="translating")
    assert [f.subject for f in wrong if f.check == "wrong-bytes"] == ["IOMMU"]
    benchmarks = ("nodes_rails", "device_local_copy")
    lost = run_of(TREE, load(TREE)[1], *benchmarks, faults=("lost sim:15",), samples=3)
    found = diagnose(evidence_of(judge(lost)))
    assert [f.subject for f in found if f.check == "lost"] == ["sim:15"]


@pytest.mark.parametrize(("read", "said"), [("fail", "warn"), ("unknown", "fail")])
def test_a_slow_pair_is_explained_by_what_was_read_of_its_link(read, said):
    evidence = evidence_of(judge(run_of("ppu-2x2", load("ppu-2x2")[1], COPIES[1], samples=2)))
    case = cases_of(evidence)[0]
    link = next(part for part in case.touched if part.kind == "link")
    both = [
        Finding("fabric-links", read, link, "3 of 8 links are not active"),
        Finding("slow", "fail", "a pair", "reaches 62% of its peers", cells=(case.name,)),
    ]
    found = diagnose(evidence, [lambda _: iter(both)])
    assert {each.check: each.severity for each in found}["slow"] == said
