"""Plug-ins that are broken, each in its own way, as packages to lay into a folder."""

from __future__ import annotations

from typing import NamedTuple

RUN = ("run", "--machine", "ppu-2x2", "device_local_copy", "--samples", "3", "--size", "1M")
DOCTOR = ("doctor", "--machine", "ppu-2x2")
LIST, VERSION, HELP = ("list",), ("--version", "-v"), ("--help",)
USUAL = (VERSION, LIST, RUN, DOCTOR)
"""Commands that no plug-in may change."""
REPORT, SHOW = ("report", "KEPT", "-o", "report.html"), ("show", "KEPT")
"""Commands about the run in the folder KEPT."""
LOW = ("check", "--devices", "9", "--machine", "ppu-2x2")
DEGRADED = ("doctor", "--machine", "vm-degraded")
"""Commands that end with 1 without a plug-in."""
ROOM = "from linkgauge.rooms import Room\n"


class Broken(NamedTuple):
    """A package that is broken. `room` is the text of its module PACKAGE_room, and `code` that of
    PACKAGE_code. `more` are commands that concern it, besides the usual ones. `own` are its own
    commands, with their exit codes. `clashes` is the number of its names that are taken. `files`
    are further files. `is_silent` says that nothing is broken that the commands reach, so that it
    is not named."""

    name: str
    room: str = ""
    code: str = ""
    more: tuple[tuple[str, ...], ...] = ()
    own: tuple[tuple[tuple[str, ...], int], ...] = ()
    clashes: int = 0
    metadata: bytes | None = None
    points: str | None = None
    files: tuple[tuple[str, str], ...] = ()
    is_silent: bool = False
    adds: bool = False
    """Whether it also adds something that works, so that `list` shows more."""
    called: str = ""
    """How messages name it, if not by the name and the version."""

    @property
    def origin(self):
        return self.called or f"{self.name} 1.0"

    def lay(self, site):
        """Lays the package into a folder, as pip would. Returns the folder."""
        about = site / f"{self.name}-1.0.dist-info"
        about.mkdir(parents=True)
        usual = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: 1.0\n".encode()
        (about / "METADATA").write_bytes(usual if self.metadata is None else self.metadata)
        usual_points = f"[linkgauge.rooms]\nx = {self.name}_room:ROOM\n"
        (about / "entry_points.txt").write_text(self.points or usual_points)
        named = self.room.replace("NAME", self.name)
        text = f"{ROOM}ROOM = {named}\n" if named.startswith("Room(") else named
        (site / f"{self.name}_room.py").write_text(text)
        (site / f"{self.name}_code.py").write_text(self.code)
        for name, content in self.files:
            (site / name).write_text(content)
        return site


CHECK = "Room('NAME', checks=('NAME_code:c',))"
BACKEND = "Room('NAME', backends={'npu': 'NAME_code:create'})"
ROWS = "Room('NAME', benchmarks={'Mine': 'NAME_code:ROWS'})"
SECTION = "Room('NAME', sections=('NAME_code:S',))"
FORMAT = "Room('NAME', formats=('NAME_code:F',))"
FINDING = "from linkgauge.judge.findings import Finding\n"
OF_SECTION = (
    "from linkgauge.report.sections import Section\n"
    "from linkgauge.report.blocks import Prose, plain\n"
)
OF_ROWS = "from linkgauge.benchmarks.table import Layout, Row, Sweep\n"
_HOST_COPY = ("copy", "host:0 -> host:0", "--size", "64K", "--samples", "3", "--no-verdict")
OF_BACKEND = (("run", "--backend", "npu", *RUN[3:]), ("devices", "--machine", "ppu-2x2"))

AT_IMPORT = (
    Broken("divides", "1/0"),
    Broken("exits", "import sys; sys.exit(0)", more=(DEGRADED, LOW)),
    Broken("exits-with-three", "import sys; sys.exit(3)"),
    Broken("interrupts", "raise KeyboardInterrupt"),
    Broken("unusual", "class B(BaseException): pass\nraise B('x')"),
    Broken("grammar", "def ("),
    Broken("recursion", "def f(): f()\nf()"),
    Broken("printing", f"print('PLUGIN OUT')\n{ROOM}ROOM = Room('printing')", is_silent=True,
           more=((*RUN, "--json"), (*DOCTOR, "--json"))),
    Broken("escaping", r"raise RuntimeError('\x1b[2J\n::error::x')"),
    Broken("loads", "Room('NAME', checks=('json:loads',))"),
)  # fmt: skip
METADATA = (
    Broken("latin", "1/0", metadata=b"Metadata-Version: 2.1\nName: x\xff\nVersion: 1.0\n",
           called="x\ufffd 1.0"),
    Broken("empty", "1/0", metadata=b"", called="empty-1.0.dist-info"),
    Broken("points", ROOM + "nothing = 5", points=(
        "[linkgauge.rooms]\n = \nx\ny = \nz = nosuch\nw = :\nv = points_room\n"
        "u = points_room:absent\nt=..:..\n"
    )),
)  # fmt: skip
TYPES = (
    Broken("listing", "Room('NAME', commands=['a'])", more=(HELP,)),
    Broken("nameless", "Room(None)"),
    Broken("numbers", "Room('NAME', checks=(1, None), benchmarks={'H': 3}, sections=5)"),
    Broken("mixed", "Room('NAME', backends={1: 2}, tools={'x': None}, machines={'m': 7}, "
                    "kept={'run.json': 'a:b'})"),
    Broken("named-list", "Room(['l'])"),
    Broken("escapes", r"Room('\x1b[2Jesc', commands={'\x1b[31mfly': 'c:f', 'a\nb': 'c:f'}, "
                      r"backends={'\x1b]0;x\x07': 'c:f'})",
           more=(HELP, ("devices", "--machine", "ppu-2x2"))),
)  # fmt: skip
CHECKS = (
    Broken("checks", "Room('NAME', checks=tuple('NAME_code:' + one for one in 'cdegh'))",
           FINDING + """
def c(e): raise ValueError("boom")
def d(e): return 5
def e(ev): yield 7
def g(ev): yield Finding("x", "nosuch", "host", None, "a", ("b",))
def h(ev):
    yield Finding("x", "fail", "host", "found")
    1/0
""", more=(DEGRADED, LOW)),
    Broken("check-exits", CHECK, "import sys\ndef c(e): sys.exit(0)", more=(DEGRADED, LOW)),
    Broken("check-none", CHECK, "def c(e): return None", more=(DEGRADED,)),
)  # fmt: skip
BACKENDS = (
    Broken("backend-raises", BACKEND,
           "def create(*a, **k): raise RuntimeError('no npu \\x1b[31m')",
           more=(*OF_BACKEND, _HOST_COPY)),
    Broken("backend-none", BACKEND, "def create(*a, **k): return None",
           more=(_HOST_COPY, *OF_BACKEND[:1])),
    Broken("backend-taken", "Room('NAME', ranks={'cuda': 'NAME_code:create'})", clashes=1,
           more=(_HOST_COPY,)),
    Broken("backend-dies", BACKEND, "import os\ndef create(*a, **k): os._exit(9)",
           more=(_HOST_COPY, *OF_BACKEND[:1])),
)  # fmt: skip
BENCHMARKS = (
    Broken("rows-of-numbers", ROWS, "ROWS = [1, 2]"),
    Broken("rows-none", ROWS, "ROWS = None"),
    Broken("rows-late", ROWS, "def f():\n    yield from ()\n    raise ValueError('late')\n"
                              "ROWS = f()"),
)  # fmt: skip
OWN = (
    Broken("own", "Room('NAME', commands={'fly': 'NAME_code:fly', 'run': 'NAME_code:fly', "
                  "'boom': 'NAME_code:boom', 'none': 'NAME_code:absent'})",
           "def fly(): return 'x'\ndef boom(): raise ValueError('boom')",
           more=(HELP,), own=((("fly",), 3), (("boom",), 3), (("none",), 2)), clashes=1),
    Broken("tools", "Room('NAME', tools={'zt': 'NAME_code:f', 'nvbandwidth': 'NAME_code:f'})",
           "def f(*a): raise ValueError('of a tool')",
           more=(("as", "nvbandwidth", "--help"),),
           own=((("as", "zt"), 3), (("as", "zt", "--help"), 3)), clashes=1),
    Broken("shown", "Room('NAME', sections=('NAME_code:S',), formats=('NAME_code:F',))",
           "S = 3\nF = 'x'", more=(REPORT, SHOW)),
    Broken("machines", "Room('NAME', machines={'m': 'NAME_code:m', 'n': 'NAME_code:n'})",
           "def m(v): raise ValueError('m')\ndef n(v): return 5",
           more=(("devices", "--machine", "no-such"),)),
)  # fmt: skip
FURTHER = (
    Broken("closes", f"import sys\nsys.stdout.close(); sys.stderr.close()\n{ROOM}"
                     "import os; os.system('echo PLUGIN OUT')\n1/0",
           more=((*DOCTOR, "--json"),)),
    Broken("takes-signals", "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                            "class E(Exception):\n    def __str__(self): 1/0\nraise E"),
    Broken("blocks", SECTION, OF_SECTION + "def of(one):\n    yield 7\n"
           "S = Section('blocks', 'Blocks', 5, of, of, True, lambda r, d: [5])",
           more=(REPORT, SHOW)),
    Broken("sections", SECTION, OF_SECTION + "import sys\ndef of(one):\n"
           "    yield Prose([plain('fine')])\n    sys.exit(0)\n"
           "def below(result, detailed):\n    yield (5,)\n"
           "S = Section('mine', 'Mine', 5, of, of, True, below)", more=(REPORT, SHOW)),
    Broken("format", FORMAT, "from linkgauge.report.formats import Format\n"
           "F = Format('loud', 'Loud.', 'format_code:f')\ndef f(blocks): raise ValueError('loud')",
           own=(((*DOCTOR, "--loud"), 3),), more=(("run", "--help"),)),
    Broken("option", FORMAT, "from linkgauge.report.formats import Format\n"
           "F = Format('size', 'Mine.', 'option_code:f')\ndef f(blocks): return ''",
           more=(("run", "--help"),), is_silent=True),
    Broken("row", ROWS, OF_ROWS + "ROWS = [Row('mine', 'Mine', Layout.PAIRS, 'a -> z by q'), "
                                  "Row(5, 6, 7, 8)]"),
    Broken("sweep", ROWS, OF_ROWS + "def cells(on): raise ValueError('cells')\n"
           "ROWS = [Sweep('mine', 'Mine', cells, size=cells, left_out=cells)]",
           more=(("list", "-v"),), own=((("run", "mine", *RUN[1:3], "--dry-run"), 0),), adds=True),
    Broken("endless", CHECK, FINDING + "def c(e):\n    while True: yield "
           "Finding('mine', 'fail', 'host', 'found')", more=(DEGRADED,)),
    Broken("devices", BACKEND, """
from linkgauge.backends.host import create as host
def create(engines, host_of):
    made = host(engines, host_of)
    made.devices = lambda: [1, 2]
    return made
""", more=(*OF_BACKEND, _HOST_COPY)),
    Broken("undocumented", "Room('NAME', commands={'quiet': 'NAME_code:quiet'})",
           "import sys\nfrom linkgauge.cli.options import Options\n"
           "class Of(Options):\n    a: int\n"
           "def quiet(asked: Of): sys.exit('said')", more=(HELP,), own=((("quiet",), 2),)),
    Broken("kept", "Room('NAME', kept={'mine.json': 'NAME_code:K'})", "K = 3",
           more=(("report", "KEPT/run.json", "-o", "kept.html"),)),
)  # fmt: skip
SHADOWING = Broken(
    "shadows", "Room('NAME')",
    files=(("msgspec.py", "raise RuntimeError('shadowed')"), ("typing_extensions.py", ""),
           ("rich.py", ""), ("json.py", "")),
    more=(REPORT, SHOW, (*RUN, "--fault", "crash sim:0")),
)  # fmt: skip
"""It has packages of names that linkgauge needs."""

BROKEN = (SHADOWING, *AT_IMPORT, *METADATA, *TYPES, *CHECKS, *BACKENDS, *BENCHMARKS, *OWN, *FURTHER)
QUICK = (
    "exits",
    "interrupts",
    "printing",
    "latin",
    "escapes",
    "shadows",
    "checks",
    "backend-taken",
    "own",
    "blocks",
    "takes-signals",
)
"""A sample that the usual suite tries."""
