"""A test of ReFrame: the links of a node are as they should be, and their figures are kept.

reframe -c contrib/reframe/linkgauge_check.py --run
"""

import json
import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, sanity_function, variable


@rfm.simple_test
class LinkgaugeCheck(rfm.RunOnlyRegressionTest):
    """Measures the quick profile. Set `linkgauge` and `options` by -S, or in a class that derives
    from this one."""

    descr = "Data moves between memories as fast as the hardware should"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    linkgauge = variable(str, value="linkgauge")
    options = variable(typ.List[str], value=["--profile", "quick"])
    keep_files = ["runs", "summary.json"]

    @run_before("run")
    def measure(self):
        self.env_vars = {"LINKGAUGE_HISTORY": "none"}
        self.executable = self.linkgauge
        self.executable_opts = [
            "run",
            "--no-report",
            "--out",
            "runs",
            *map(shlex.quote, self.options),
        ]
        self.postrun_cmds = [f"{self.linkgauge} export runs --json -o summary.json"]

    @property
    def summary(self):
        return json.loads(Path(self.stagedir, "summary.json").read_text("utf-8"))

    @sanity_function
    def is_as_it_should_be(self):
        summary = self.summary
        named = "; ".join(f"{one['check']} {one['subject']}" for one in summary["findings"])
        return sn.assert_in(
            summary["verdict"], ("ok", "warn"), f"verdict {summary['verdict']}: {named}"
        )

    @run_before("performance")
    def keep_the_worst_of_each_benchmark(self):
        worst = {}
        for cell in self.summary["cells"]:
            if cell["unit"] == "B/s" and cell["figure"] is not None:
                known = worst.get(cell["benchmark"], cell["figure"])
                worst[cell["benchmark"]] = min(known, cell["figure"])
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(figure / 1e9), "GB/s")
            for name, figure in worst.items()
        }
