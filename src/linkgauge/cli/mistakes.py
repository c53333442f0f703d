"""Proposes what to type instead of a wrong command line. It is loaded only for such lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

import click
from click.core import ParameterSource

from linkgauge.model.errors import InputError
from linkgauge.model.names import UnknownName, hint

from .help_text import examples
from .parameters import HelpArgument, HelpOption, Offering

_MEANT = {
    "--device --gpus --backend": "gpu gpus device devices dev card npu cuda deviceid gpuid d g",
    "--samples --iterations --rounds --probes --rerun --last": (
        "n i iterations iters iter count repetitions repeat runs rounds samples testsamples "
        "numiters"
    ),
    "--gpus --ranks --device": "ranks np ngpus nprocs processes",
    "--size --buffer": "buffersize buffer size bytes minbytes maxbytes msgsize blocksize s m b e",
    "--for --duration --budget --under --max-time": "time duration seconds runtime for T",
    "--under --timeout --max-time": "timeout maxtime limit",
    "--listen": "port address bind p",
    "--current": "run current new",
    "--baseline --against": "baseline against reference before old compare",
    "-o --textfile --out": "output outfile outputfile outputdir out o file",
    "--json --csv": "format outputformat f",
    "--prefix": "testcaseprefixes testcaseprefix prefix filter match k p",
    "--benchmark": "benchmark benchmarks only test testcase tests t",
    "--min-loss --detect --least --significance": "threshold tolerance maxloss loss limit",
    "--verbose --matrix --all": "verbose debug details detail v vv V all full",
    "--parallel-pairs": "parallel concurrent j",
    "--no-verify": "skipverification noverify nocheck check c",
    "--no-affinity": "disableaffinity noaffinity",
    "--machine": "machine simulate sim system host model",
    "--root": "sysroot chroot rootdir sysfs",
    "--as": "guest vm role",
    "write NO_COLOR=1 before linkgauge": "nocolor nocolour",
    "write FORCE_COLOR=1 or NO_COLOR=1 before linkgauge": "color colour",
    "progress goes to stderr, so 2> /dev/null hides it; > FILE keeps the rest": "quiet silent q",
    "each cell warms up by itself": "warmup warmups warmupiters w",
    "linkgauge list shows all benchmarks": "list ls l",
    "write the name alone: linkgauge run BENCHMARK": "test testcase tests benchmark benchmarks t",
    "linkgauge show without a name shows the latest run": "last latest",
    "linkgauge devices without a name shows this machine": "nvidia amd intel local all gpu gpus",
    "linkgauge compare BEFORE AFTER and linkgauge gate --baseline REF compare runs": (
        "baseline before old against compare current after"
    ),
    "--yes --force": "yes y noninteractive batch force",
    "it asks nothing": "yes y noninteractive batch",
    "linkgauge --version shows it": "version",
    "2> FILE keeps its messages": "log logfile",
    "linkgauge report -o report.html writes it": "html",
    "linkgauge report -o report.pdf writes it": "pdf",
}
"""What people write who know other tools, without dashes: the options that mean it here, of which
the first counts that a command has, or a sentence."""
_COMMANDS = {
    "run": "test bench benchmark measure start bandwidth bw nvbandwidth-test perf",
    "devices": "info topo topology detect hardware status lsgpu nvidia-smi system inventory",
    "list": "ls tests benchmarks tasks",
    "doctor": "diagnose diagnosis fix health",
    "show": "results result view print cat last latest",
    "compare": "diff cmp",
    "report": "html pdf page",
    "history": "log trend stats trends runs",
    "exporter": "serve metrics prometheus",
    "watch": "monitor top",
    "--version": "version",
}
"""Words that people try as commands, by the command that does it."""
_SHAPES = (
    (r"[a-z]+(:[a-z]+)?:\d+", ("--device",)),
    (r"\d+(\.\d+)?[KMGT](i?B)?", ("--size", "--buffer")),
    (r"\d+(ms|s|m|h|d)", ("--under", "--for", "--budget", "--duration", "--max-time")),
    (r"\d+(,\d+)*", ("--gpus", "--devices", "--listen")),
    (r"\S+\.(html|pdf|csv|json|xml|md|parquet|prom)", ("-o", "--textfile")),
)
"""What a word that no option precedes looks like, and the options that take such a word."""
_NAMING = ("run", "scale", "ai", "as")
"""The commands whose arguments are names that others also try elsewhere."""
_NAMED = 4
"""The most commands that a message names."""


def said(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    if context is None:
        return error.format_message()
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(context, error.option_name)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{context.command_path} needs {_written(error.param)}{_as_in(context)}"
    if isinstance(error, click.BadOptionUsage):
        found = (p for p in context.command.params if error.option_name in p.opts)
        param = next((one for one in found if isinstance(one, HelpOption)), None)
        if param is not None and not param.is_flag:
            known = param.offered(context, "")
            some = f", such as {known[0]}" if known else ""
            return f"{context.command_path} {error.option_name} needs {param.metavar}{some}"
    return error.format_message()


def unknown_command(context: click.Context, name: str, known: Mapping[str, object]) -> UnknownName:
    path = context.command_path
    meant = next((one for one, words in _COMMANDS.items() if name in words.split()), None)
    if meant is not None:
        return UnknownName("command", name, f", did you mean '{path} {meant}'?")
    other = _command_for(context, name)
    if other is not None:
        return UnknownName("command", name, f", did you mean '{other}'?")
    return UnknownName("command", name, hint(name, known, f": {path} --help lists them"))


def too_many(context: click.Context, extra: Sequence[str]) -> str:
    path, word = context.command_path, extra[0]
    taken = [one for one in _arguments(context.command) if isinstance(one, HelpArgument)]
    values = [str(context.params[one.name]) for one in taken if context.params.get(one.name)]
    meant = _option_for(context, word)
    if meant is not None:
        return f"{path} takes no argument {word!r}, did you mean {meant}?"
    if any("--prefix" in one.opts for one in context.command.params):
        from linkgauge.benchmarks.catalog import CATALOG

        if any(name.startswith(word) for name in CATALOG):
            return f"{path} takes no argument {word!r}, did you mean --prefix {quote(word)}?"
        if any(word in name for name in CATALOG):
            found = f"{context.find_root().command_path} list | grep {quote(word)}"
            return f"{path} takes no argument {word!r}: '{found}' shows the names with it"
    if taken and taken[0].quoted is not None:
        text = taken[0].quoted([*values, *extra])
        return f"{path} takes one argument, in quotes: {path} {text}"
    if taken and values and taken[0].metavar == "RUN":
        both = " ".join(map(quote, (*values, *extra)))
        return f"{path} takes one run: {context.find_root().command_path} compare {both} compares"
    what = f"one {taken[0].metavar}, not also" if taken else "no argument"
    return f"{path} takes {what} {word!r}{_as_in(context)}"


def meant_by(context: click.Context, error: UnknownName) -> str:
    """Returns a message that proposes an option or a command instead of an unknown name."""
    meant = _option_for(context, error.name) or _command_for(context, error.name)
    return str(error) if meant is None else f"{str(error).rstrip('?')}; or did you mean {meant}?"


def meant_by_words(context: click.Context, error: InputError) -> str | None:
    """Proposes what to type for an argument that the error names and that is no file, or None."""
    values = [context.params.get(one.name or "") for one in _arguments(context.command)]
    each = (one for value in values for one in (value if isinstance(value, tuple) else (value,)))
    for word in (str(one) for one in each if one is not None):
        is_named = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", str(error))
        if "/" in word or not is_named or Path(word).exists():
            continue
        if option := _option_for(context, word):
            return f"or did you mean {option}?"
        if sentence := _meant(word, ()):
            return sentence
    return None


def _no_such_option(context: click.Context, option: str) -> str:
    """Returns a message that proposes a similar option, or names commands that have `option`."""
    path, command = context.command_path, context.command
    known = [name for param in command.get_params(context) for name in param.opts]
    others = [
        name
        for name, one in _all_commands(context)
        if one is not command and any(option in param.opts for param in one.params)
    ]
    meant = _meant(option, known)
    near = hint(option, known, "")
    if meant is not None:
        ends = f", did you mean {meant!r}?" if meant.startswith("-") else f": {meant}"
    elif others:
        more = "" if len(others) <= _NAMED else f" and {len(others) - _NAMED} more"
        ends = f": {', '.join(others[:_NAMED])}{more} {'have' if others[1:] else 'has'} it"
    else:
        ends = near or f": {path} --help lists its options"
    return f"{path} has no option {option}{ends}"


def _meant(option: str, known: Sequence[str]) -> str | None:
    bare = option.lstrip("-")
    word = bare if len(bare) == 1 else bare.replace("-", "").lower()
    for meant, words in _MEANT.items():
        if word not in words.split():
            continue
        if not meant.startswith("-"):
            return meant
        found = next((one for one in meant.split() if one in known), None)
        if found is not None:
            return found
    return None


def _option_for(context: click.Context, word: str) -> str | None:
    """Returns the option that a bare word may belong to (`--profile quick`), or None."""
    params = [one for one in context.command.get_params(context) if not _is_given(context, one)]
    options = [one for one in params if isinstance(one, click.Option)]
    for one in options:
        name = max(one.opts, key=len)
        if one.is_flag and (name == f"--{word}" or name.endswith(f"-{word}")):
            return name
    offering = (one for one in options if isinstance(one, HelpOption) and not one.is_flag)
    found = next((one.opts[0] for one in offering if word in one.offered(context, word)), None)
    if found is None:
        known = {name for one in options for name in one.opts}
        takes = (names for shape, names in _SHAPES if re.fullmatch(shape, word))
        found = next((name for names in takes for name in names if name in known), None)
    if found is None and ("/" in word or Path(word).exists()):
        found = next((one.opts[0] for one in options if one.metavar in ("RUN", "REF")), None)
    return None if found is None else f"{found} {quote(word)}"


def _command_for(context: click.Context, word: str) -> str | None:
    """Returns a command that takes this word as argument (`linkgauge as nvbandwidth`), or None."""
    root = context.find_root()
    for name, command in _all_commands(root):
        is_other = command is not context.command and name in _NAMING
        if is_other and any(word in one.offered(root, word) for one in _arguments(command)):
            return f"{root.command_path} {name} {word}"
    return None


def _is_given(context: click.Context, param: click.Parameter) -> bool:
    return context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE


def _all_commands(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    root = context.find_root()
    group = root.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(root):
        command = group.get_command(root, name)
        if command is not None:
            yield name, command


def _arguments(command: click.Command) -> Iterable[Offering]:
    return (one for one in command.params if isinstance(one, HelpArgument))


def _written(param: click.Parameter) -> str:
    return (
        f"{param.opts[0]} {param.metavar}"
        if isinstance(param, click.Option)
        else f"{param.metavar}"
    )


def _as_in(context: click.Context) -> str:
    lines = examples(context.command.help)
    return f", as in: {lines[0]}" if lines else f": {context.command_path} --help explains it"
