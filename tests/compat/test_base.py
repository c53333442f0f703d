"""`linkgauge as`: a tool's own arguments reach it, and it measures where it is told to."""

import sys

import pytest

from command_kit import called
from compat_kit import ONE_DEVICE, where
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.cli.as_tool import complete_tool
from linkgauge.compat import TOOLS, base
from linkgauge.compat.base import (
    Parser,
    Quiet,
    UsageError,
    Where,
    measure,
    opened,
    printing_once,
)
from linkgauge.model.errors import InputError
from linkgauge.model.result import exit_code
from linkgauge.model.settings import Settings
from processes_kit import as_rank

SETTINGS = Settings((1 << 20,), samples=2, loops=1)
COPIES = "host_to_device_memcpy_ce"


class TestOpened:
    def test_a_simulated_machine_is_named_on_stderr_only(self, capsys):
        with opened(where("ppu-8"), SETTINGS) as context:
            assert context.backend == "sim"
            assert [device.index for device in context.devices] == list(range(8))
        assert capsys.readouterr() == ("", "SIMULATED ppu-8\n")

    def test_devices_are_selected_by_name(self):
        with opened(where("ppu-8"), SETTINGS, devices=["sim:2", "5"]) as context:
            assert [device.memory for device in context.devices] == ["sim:2", "sim:5"]

    def test_a_device_that_does_not_exist_is_refused(self):
        with (
            pytest.raises(InputError, match="unknown device '9'"),
            opened(where("ppu-8"), SETTINGS, devices=["9"]),
        ):
            pass

    def test_backend_host_has_no_devices(self):
        with opened(Where(backend="host"), SETTINGS) as context:
            assert context.devices == ()
            assert context.machine.host.nodes == context.fabric.nodes != ()


class TestProcesses:
    """Of the processes that mpirun started, all measure and one prints."""

    @pytest.mark.parametrize(("rank", "printed"), [(0, "figures\n"), (1, ""), (3, "")])
    def test_the_first_alone_prints(self, monkeypatch, capsys, rank, printed):
        as_rank(monkeypatch, rank, 4)
        with printing_once():
            print("figures")
            print("an error", file=sys.stderr)
        print("afterwards")
        assert capsys.readouterr() == (f"{printed}afterwards\n", "an error\n")

    @pytest.mark.parametrize(("rank", "said"), [(0, "SIMULATED ppu-8\n"), (1, "")])
    def test_a_simulated_machine_is_named_by_the_first_alone(self, monkeypatch, capsys, rank, said):
        monkeypatch.setattr(base, "opened_session", lambda request: _nothing_opens())
        as_rank(monkeypatch, rank, 2)
        with (
            pytest.raises(InputError, match="nothing opens"),
            opened(where("ppu-8"), SETTINGS, several=True),
        ):
            pass
        assert capsys.readouterr() == ("", said)

    @pytest.mark.parametrize("several", [True, False])
    def test_the_session_is_of_all_where_benchmarks_between_processes_are_meant(
        self, monkeypatch, several
    ):
        asked = []
        monkeypatch.setattr(base, "opened_session", lambda r: asked.append(r) or _nothing_opens())
        with (
            pytest.raises(InputError, match="nothing opens"),
            opened(Where(), SETTINGS, several=several),
        ):
            pass
        assert asked[0].what.is_across_ranks is several


def _nothing_opens():
    raise InputError("nothing opens")


class TestMeasure:
    def test_results_come_as_they_are_complete_and_nothing_is_kept(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        told = []
        observer = Quiet()
        observer.completed = told.append
        with opened(where(ONE_DEVICE), SETTINGS) as context:
            rows = [CATALOG[COPIES], CATALOG["device_local_copy"]]
            benchmarks = [row.lay_out(context.fabric) for row in rows]
            run = measure(context, benchmarks, observer=observer)
        assert tuple(told) == run.results
        assert [result.benchmark for result in told] == [COPIES, "device_local_copy"]
        assert {cell.status for result in told for cell in result.cells} == {"pass"}
        assert {len(cell.samples) for result in told for cell in result.cells} == {2}
        assert exit_code(run) == 0
        assert run.simulated
        assert list(tmp_path.iterdir()) == []

    def test_other_sizes_than_the_settings_can_be_asked_for(self):
        with opened(where(ONE_DEVICE), SETTINGS) as context:
            laid_out = [CATALOG[COPIES].lay_out(context.fabric)]
            run = measure(context, laid_out, sizes=(4096, 8192))
        assert [result.size for result in run.results] == [4096, 8192]

    def test_a_size_that_fits_nowhere_is_refused(self):
        with (
            opened(where(ONE_DEVICE), SETTINGS) as context,
            pytest.raises(InputError, match="does not fit"),
        ):
            measure(context, [CATALOG[COPIES].lay_out(context.fabric)], sizes=(1 << 40,))


class TestParser:
    def test_what_is_wrong_is_raised_with_argparses_words(self):
        parser = Parser()
        parser.add_argument("--count", type=int)
        with pytest.raises(UsageError, match="argument --count: invalid int value: 'x'") as caught:
            parser.parse_args(["--count", "x"])
        assert caught.value.exit_code == 1

    def test_help_is_the_tools_own_matter(self):
        with pytest.raises(UsageError, match="unrecognized arguments: --help"):
            Parser().parse_args(["--help"])


class TestCommand:
    def test_what_follows_the_tools_name_is_the_tools(self):
        for flag in ("-h", "--help"):
            done = called("as", "nvbandwidth", flag)
            assert done.returncode == 0
            assert "nvbandwidth CLI:" in done.stdout
            assert "Usage: linkgauge" not in done.stdout

    def test_what_a_tool_cannot_do_is_said_under_its_name(self):
        done = called("as", "--machine", "ipu-m2000", "gc-hosttraffictest", "-d", "9")
        assert (done.returncode, done.stdout) == (2, "")
        assert "\ngc-hosttraffictest: unknown device '9'" in done.stderr

    @pytest.mark.parametrize(
        ("tool", "says"),
        [
            ("nvBandwidth", ", did you mean 'nvbandwidth'?"),
            ("nvbandwidth2", ", did you mean 'nvbandwidth'?"),
            ("", ": there are nvbandwidth, sailbandwidth"),
        ],
    )
    def test_an_unknown_tool_is_refused_with_the_nearest_or_those_there_are(self, tool, says):
        done = called("as", tool)
        assert done.returncode == 2
        assert f"unknown tool {tool!r}{says}" in done.stderr

    def test_without_a_tool_it_says_so(self):
        done = called("as")
        assert done.returncode == 2
        assert "TOOL" in done.stderr

    def test_an_option_of_linkgauge_before_the_tool_must_exist(self):
        done = called("as", "--bogus", "nvbandwidth", "-l")
        assert done.returncode == 2
        assert "--bogus" in done.stderr

    def test_machine_and_backend_may_stand_in_the_environment(self):
        arguments = ("as", "nvbandwidth", "-t", "0", "-b", "1", "-i", "1")
        done = called(*arguments, LINKGAUGE_MACHINE="ppu-8")
        assert done.returncode == 0
        assert "Running host_to_device_memcpy_ce." in done.stdout
        assert "SIMULATED ppu-8" in done.stderr
        assert "SIMULATED" not in done.stdout
        refused = called(*arguments, LINKGAUGE_BACKEND="rocm")
        assert refused.returncode == 2
        assert "unknown backend 'rocm'" in refused.stderr
        both = called(*arguments, LINKGAUGE_BACKEND="cuda", LINKGAUGE_MACHINE="ppu-8")
        assert "backend 'cuda': a simulated machine has host, sim" in both.stderr

    def test_the_tools_names_are_completed(self):
        assert complete_tool("n") == ["nvbandwidth"]
        assert complete_tool("") == list(TOOLS)
