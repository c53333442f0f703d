"""The command `linkgauge ai`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from linkgauge.cli import common
from linkgauge.cli.help_text import OUTPUT, WHAT, Typed
from linkgauge.cli.options import Count, Options, Time, argument, numbers, one_of, option
from linkgauge.model.errors import InputError

if TYPE_CHECKING:
    from linkgauge.model.operations.workload import WorkloadChoice

PREFIX, SERVING = "ai_", "ai_serving"
_MOST = 1 << 20
_ADVICE = f"give numbers from 1 to {_MOST}, such as 1,8,64"


def _workload_names(_: Typed | None = None) -> Sequence[str]:
    from .benchmarks import WORKLOADS

    return (*(row.name.removeprefix(PREFIX) for row in WORKLOADS), "serving")


class AiOptions(Options):
    workloads: tuple[str, ...] = argument(
        "WORKLOAD...",
        "Measure these: inference, inference_streamed, kv_offload, training_step, pipeline, "
        "serving. Default: all but serving.",
        offer=_workload_names,
    )
    model: Literal["10m", "100m", "1b", "3b"] | None = option(
        WHAT,
        "Use a model of this size. Default: 3b; 1b for training; 10m on a CPU.",
        "10m|100m|1b|3b",
    )
    batch: str | None = option(
        WHAT, "Use these batch sizes: 1,8,64. Default: 1 to 64; on a CPU, 1 and 4 only.", "N[,N…]"
    )
    prompt: str | None = option(WHAT, "Use prompts of this many tokens: 512,2048.", "N[,N…]")
    types: str | None = option(WHAT, "Use these types of numbers. Default: all.", "bf16,fp16,fp32")
    tokens: Count = option(WHAT, "Make this many tokens after each prompt.", "N", default=16)
    ranks: Count | None = option(
        WHAT, "Train on this many devices. Default: 1, 2, 4 … and all.", "N"
    )
    implementation: Literal["own", "transformers"] = option(
        WHAT,
        "Run linkgauge's own decoder, or the model of the library transformers.",
        "own|transformers",
        default="own",
    )
    seed: int = option(WHAT, "Draw weights and prompts with this seed.", "S", default=1)
    url: str | None = option(
        WHAT, "Send requests to the server at this address (serving).", "URL", is_input=True
    )
    server: Literal["openai", "triton-http", "triton-grpc"] = option(
        WHAT,
        "What the server speaks: OpenAI's protocol, or Triton's.",
        "openai|triton-http|triton-grpc",
        default="openai",
    )
    server_model: str | None = option(
        WHAT, "Ask the server for this model. Default: its first.", "NAME", is_input=True
    )
    rate: str | None = option(
        WHAT, "Also send this many requests a second at random moments: 1,4,16.", "N[,N…]"
    )
    samples: Count | None = option(WHAT, "Take N samples of each cell. Default: 5.", "N")
    device: tuple[str, ...] = common.DEVICE
    machine: str | None = option(
        WHAT, "Refused, with what to run instead.", "NAME", hidden=True, is_input=True
    )
    timeout: Time | None = common.TIMEOUT
    no_verify: bool = common.NO_VERIFY
    label: str = common.label("ai")
    trace: Path | None = option(
        OUTPUT, "Trace a loop of each cell into this folder, for Perfetto.", "DIR"
    )
    out: Path = common.RUNS_BELOW
    no_report: bool = common.NO_REPORT
    wait: bool = common.WAIT
    profiling: common.Profiling
    form: common.RunFormat


def ai(asked: AiOptions) -> int:
    """Measure AI workloads, and say which part of the machine bounds them.

    Examples:
        linkgauge ai inference --batch 1,8,64
        linkgauge ai training_step --ranks 2
        linkgauge ai serving --url http://127.0.0.1:8000
    """
    from linkgauge.cli.requests import request_of, settings_of, under
    from linkgauge.engine.request import Selection
    from linkgauge.model.settings import EngineSettings
    from linkgauge.report.keeping import Display
    from linkgauge.uses.measuring import carry_out

    if asked.machine is not None:
        raise _refusal(asked.machine)
    names = names_of(asked.workloads)
    choice = _with_server(names, choice_of(asked), asked)
    if SERVING in names and choice.rates:
        names = (*names, f"{SERVING}_open")
    choice, is_first = _among_ranks(names, choice)
    if not is_first:
        return 0
    sampling = common.Sampling(
        samples=asked.samples, timeout=asked.timeout, no_verify=asked.no_verify
    )
    settings = settings_of("standard", None, sampling, EngineSettings())
    settings = under(asked.profiling, settings, asked.out)
    request = request_of(asked, Selection(names), settings, "standard", workloads=choice)
    return carry_out(request, Display(asked.form, matrix=True, page=not asked.no_report))


def _refusal(machine: str) -> InputError:
    from shlex import quote

    from linkgauge.report.words.remedies import Command
    from linkgauge.report.words.sentences import program

    instead = Command((program(), "scale", "all_reduce", "--machine", quote(machine)))
    return InputError(
        "--machine: AI workloads are not simulated; to simulate their all_reduce alone: "
        f"{instead.line}"
    )


def names_of(asked: Sequence[str]) -> tuple[str, ...]:
    """Returns full names of `asked` or, if empty, of all but `serving`. Raises InputError."""
    from linkgauge.model.names import UnknownName, hint

    there = _workload_names()
    for name in asked:
        if name.removeprefix(PREFIX) not in there:
            raise UnknownName("workload", name, hint(name, there))
    names = [name.removeprefix(PREFIX) for name in asked]
    return tuple(PREFIX + name for name in dict.fromkeys(names or there[:-1]))


def _with_server(names: Sequence[str], choice: WorkloadChoice, asked: AiOptions) -> WorkloadChoice:
    from msgspec.structs import replace

    from linkgauge.model.operations.workload import Server

    from .serving.openai import check_address

    url, rate = asked.url, asked.rate
    if (url is None) == (SERVING in names):
        raise InputError(
            "'serving' needs --url, which nothing else takes: linkgauge ai serving --url URL"
        )
    if url is None:
        return choice
    rates = [] if rate is None else [part.strip() for part in rate.split(",")]
    try:
        found = tuple(dict.fromkeys(map(float, rates)))
    except ValueError:
        found = (0.0,)
    if not all(0 < one < _MOST for one in found):
        raise InputError(f"--rate {rate}: give requests a second, such as 1,4,16")
    server = Server(url, asked.server, asked.server_model)
    if server.kind == "openai":
        check_address(url)
    return replace(choice, server=server, rates=found)


def choice_of(asked: AiOptions) -> WorkloadChoice:
    from linkgauge.model.operations.workload import NUMBER_KINDS, WorkloadChoice

    if not 0 <= asked.seed < 1 << 32:
        raise InputError(f"--seed {asked.seed}: give 0 to 4294967295")
    return WorkloadChoice(
        asked.model,
        numbers("--batch", asked.batch, _ADVICE, _MOST),
        numbers("--prompt", asked.prompt, _ADVICE, _MOST),
        tuple(
            dict.fromkeys(
                one_of("--types", name.strip(), NUMBER_KINDS)
                for name in (asked.types.split(",") if asked.types else ())
            )
        ),
        asked.tokens,
        asked.ranks,
        asked.implementation,
        asked.seed,
        None if asked.trace is None else str(asked.trace.absolute()),
    )


def _among_ranks(names: Sequence[str], choice: WorkloadChoice) -> tuple[WorkloadChoice, bool]:
    from msgspec.structs import replace

    from linkgauge.machine.processes.launch import launched

    launch = launched(by_torch=True)
    if launch.size == 1:
        return choice, True
    if any(name != "ai_training_step" for name in names):
        raise InputError("torchrun and mpiexec are for training: linkgauge ai training_step")
    if launch.rank:
        from .workloads.training import follow_launched

        follow_launched(launch)
        return choice, False
    return replace(choice, ranks=launch.size), True
