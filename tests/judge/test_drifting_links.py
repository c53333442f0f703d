"""A link whose rate falls during a run is said to fall, and not to be slow since some cell."""

import pytest
import yaml

from campaign import KNOWN, SIZES, UNSEEN
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import evidence_of
from linkgauge.judge.verdict import judge
from linkgauge.model.settings import Settings

COPIES = ("host_to_device_memcpy_sm", "device_to_host_memcpy_sm")
PAIRS = ("device_to_device_memcpy_read_sm", "device_to_device_memcpy_write_sm")
LOCAL = ("device_local_copy", "host_to_host_memcpy_read_cpu", "host_to_host_memcpy_write_cpu")


@pytest.mark.parametrize(
    ("machine", "names", "fault", "part"),
    [
        # All devices copy at once, too: each such figure stands for all, but not for all sizes.
        ("dgx-h200-8", (*COPIES, "host_to_all_memcpy_sm", *LOCAL),
         "drift host:1-sim:7 per_cell=-0.0109", "PCIe link of sim:7"),
        # Each device's own PCIe link hides the first losses of a faster link between sockets.
        ("sockets4", (*COPIES, *PAIRS, *LOCAL),
         "drift host:2-host:3 per_cell=-0.0093", "host:2-host:3"),
    ],
)  # fmt: skip
def test_a_link_whose_rate_falls_is_said_to_fall(machine, names, fault, part):
    known = UNSEEN | KNOWN
    text = yaml.safe_dump(known[machine]) if machine in known else load(machine)[1]
    devices = [f"sim:{n}" for n in (range(4, 8) if machine == "dgx-h200-8" else range(4))]
    run = run_of(machine, text, *names, devices=devices, faults=(fault,),
                 settings=Settings(SIZES, samples=9))  # fmt: skip
    found = diagnose(evidence_of(judge(run)))
    told = [(f.check, f.subject) for f in found if f.severity == "fail"]
    assert told == [("drift", part)]
