"""`linkgauge ai`: inference, training steps and pipelines, and which part of the machine bounds
them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from linkgauge.cli.help_text import OUTPUT, WHAT
from linkgauge.cli.options import Option, Profiling, RunFormat, headed, own

if TYPE_CHECKING:
    from linkgauge.model.workload import WorkloadChoice

PREFIX, SERVING = "ai_", "ai_serving"
_MOST = 1 << 20
_T = TypeVar("_T", bound=str)


def _complete_workload(incomplete: str) -> list[str]:
    from .benchmarks import WORKLOADS

    names = (*(row.name.removeprefix(PREFIX) for row in WORKLOADS), "serving")
    return [name for name in names if name.startswith(incomplete)]


@own(
    **headed(
        WHAT,
        model=Option(
            "Use a model of this size. Default: 3b and for training 1b, on a CPU 10m.",
            "10m|100m|1b|3b",
        ),
        batch=Option("Use these batches: 1,8,64. Default: 1 to 64, on a CPU 1 and 4.", "N[,N…]"),
        prompt=Option("Use prompts of this many tokens: 512,2048.", "N[,N…]"),
        types=Option("Use these types of numbers. Default: all.", "bf16,fp16,fp32"),
        tokens=Option("Make this many tokens after each prompt.", "N"),
        ranks=Option("Train on this many devices. Default: 1, 2, 4 … and all.", "N"),
        implementation=Option(
            "Run linkgauge's decoder, or transformers' own classes.", "own|transformers"
        ),
        seed=Option("Draw weights and prompts with this seed.", "S"),
        url=Option("Send requests to the server at this address (serving).", "URL"),
        server=Option(
            "What the server speaks: OpenAI's protocol, or Triton's.",
            "openai|triton-http|triton-grpc",
        ),
        server_model=Option("Ask the server for this model. Default: its first.", "NAME"),
        rate=Option("Send so many requests a second at random moments, too: 1,4,16.", "N[,N…]"),
        samples=Option("Take N samples of each cell. Default: 5.", "N"),
    ),
    **headed(
        OUTPUT,
        trace=Option("Trace a loop of each cell into this folder, for Perfetto.", "DIR"),
        out=Option("Keep runs below this folder.", "DIR"),
    ),
)
def ai(
    context: typer.Context,
    *,
    workloads: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORKLOAD...",
            help="Measure these: inference, inference_streamed, kv_offload, training_step, "
            "pipeline, serving. Default: all but serving.",
            autocompletion=_complete_workload,
        ),
    ] = None,
    model: str | None = None,
    batch: str | None = None,
    prompt: str | None = None,
    types: str | None = None,
    tokens: int = 16,
    ranks: int | None = None,
    implementation: str = "own",
    seed: int = 1,
    url: str | None = None,
    server: str = "openai",
    server_model: str | None = None,
    rate: str | None = None,
    samples: int | None = None,
    device: list[str] | None = None,
    timeout: float | None = None,
    no_verify: bool = False,
    label: str = "ai",
    trace: Path | None = None,
    out: Path = Path("results"),
    no_report: bool = False,
    wait: bool = False,
    profiling: Profiling,
    form: RunFormat,
) -> int:
    """Measure AI workloads, and say which part of the machine bounds them.

    Examples:
        linkgauge ai inference --batch 1,8,64
        linkgauge ai training_step --ranks 2
        linkgauge ai serving --url http://127.0.0.1:8000
    """
    from linkgauge.cli.options import Sampling
    from linkgauge.cli.options_record import request_of
    from linkgauge.cli.requests import carry_out, settings_of, under
    from linkgauge.engine.request import Selection
    from linkgauge.model.settings import EngineSettings
    from linkgauge.report.live import Display

    names = names_of(workloads or ())
    choice = choice_of(model, batch, prompt, types, tokens, ranks, implementation, seed, trace)
    choice = _with_server(names, choice, url, server, server_model, rate)
    if SERVING in names and choice.rates:
        names = (*names, f"{SERVING}_open")
    choice, is_first = _among_ranks(names, choice)
    if not is_first:
        return 0
    sampling = Sampling(samples=samples, timeout=timeout, no_verify=no_verify)
    settings = settings_of("standard", None, sampling, EngineSettings(), None)
    request = request_of(
        context, Selection(names), under(profiling, settings, out),
        label=label, out=out, wait=wait, profile="standard", devices=tuple(device or ()),
        workloads=choice,
    )  # fmt: skip
    return carry_out(request, Display(form, matrix=True, page=not no_report))


def names_of(asked: Sequence[str]) -> tuple[str, ...]:
    """The benchmarks, all if none is named. Raises InputError for one that does not exist."""
    from linkgauge.model.errors import InputError
    from linkgauge.model.names import hint

    from .benchmarks import WORKLOADS

    every = [row.name for row in WORKLOADS]
    known = [*every, SERVING]
    names = [name if name.startswith(PREFIX) else PREFIX + name for name in asked]
    for name, typed in zip(names, asked, strict=True):
        if name not in known:
            there = [one.removeprefix(PREFIX) for one in known]
            raise InputError(f"unknown workload {typed!r}{hint(typed, there)}")
    return tuple(dict.fromkeys(names)) or tuple(every)


def _with_server(
    names: Sequence[str],
    choice: WorkloadChoice,
    url: str | None,
    kind: str,
    model: str | None,
    rate: str | None,
) -> WorkloadChoice:
    """The choice with the server that requests go to. Raises InputError if serving has none, or if
    there is one for nothing."""
    from typing import get_args

    from msgspec.structs import replace

    from linkgauge.model.errors import InputError
    from linkgauge.model.workload import Server, ServerKind

    from .serving.openai import check_address

    if (url is None) == (SERVING in names):
        raise InputError("serving and --url go together: linkgauge ai serving --url URL")
    if url is None:
        return choice
    rates = [] if rate is None else [part.strip() for part in rate.split(",")]
    try:
        found = tuple(dict.fromkeys(map(float, rates)))
    except ValueError:
        found = (0.0,)
    if not all(0 < one < _MOST for one in found):
        raise InputError(f"--rate {rate}: give requests a second, such as 1,4,16")
    server = Server(url, _one_of("--server", kind, get_args(ServerKind)), model)
    if server.kind == "openai":
        check_address(url)
    return replace(choice, server=server, rates=found)


def choice_of(
    model: str | None,
    batch: str | None,
    prompt: str | None,
    types: str | None,
    tokens: int,
    ranks: int | None,
    implementation: str,
    seed: int,
    trace: Path | None,
) -> WorkloadChoice:
    """Raises InputError for what no workload takes."""
    from typing import get_args

    from linkgauge.cli.options import at_least_one
    from linkgauge.model.ai_models import MODELS
    from linkgauge.model.workload import NUMBER_KINDS, Implementation, WorkloadChoice

    return WorkloadChoice(
        None if model is None else _one_of("--model", model, tuple(MODELS)),
        _numbers("--batch", batch),
        _numbers("--prompt", prompt),
        tuple(
            dict.fromkeys(
                _one_of("--types", name.strip(), NUMBER_KINDS)
                for name in (types.split(",") if types else ())
            )
        ),
        at_least_one("--tokens", tokens) or 1,
        at_least_one("--ranks", ranks),
        _one_of("--implementation", implementation, get_args(Implementation)),
        _natural("--seed", seed),
        None if trace is None else str(trace.absolute()),
    )


def _one_of(option: str, name: str, known: Sequence[_T]) -> _T:
    from linkgauge.model.errors import InputError
    from linkgauge.model.names import hint

    found = next((one for one in known if one == name), None)
    if found is None:
        raise InputError(f"{option} {name}{hint(name, known)}")
    return found


def _natural(option: str, number: int) -> int:
    from linkgauge.model.errors import InputError

    if not 0 <= number < 1 << 32:
        raise InputError(f"{option} {number}: give 0 to 4294967295")
    return number


def _numbers(option: str, text: str | None) -> tuple[int, ...]:
    """`1,8,64`, each once."""
    from linkgauge.model.errors import InputError

    given = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(one.isascii() and one.isdecimal() and 0 < int(one) <= _MOST for one in given):
        raise InputError(f"{option} {text}: give numbers from 1 to {_MOST}, such as 1,8,64")
    return tuple(dict.fromkeys(map(int, given)))


def _among_ranks(names: Sequence[str], choice: WorkloadChoice) -> tuple[WorkloadChoice, bool]:
    """The choice with as many ranks as torchrun or mpiexec started, and whether this process
    measures: the others take part in its training steps until it ends, here."""
    import os

    from msgspec.structs import replace

    from linkgauge.model.errors import InputError

    from .workloads.ranks import joined

    launched = joined(os.environ)
    if launched is None:
        return choice, True
    if any(name != "ai_training_step" for name in names):
        raise InputError("torchrun and mpiexec are for training: linkgauge ai training_step")
    if launched.rank:
        from .workloads.ranks import follow_launched

        follow_launched(launched)
        return choice, False
    return replace(choice, ranks=launched.size), True
