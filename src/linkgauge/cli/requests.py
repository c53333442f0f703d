"""Converts options to settings and requests, and back to the text that a run records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from msgspec.structs import replace

from linkgauge.engine.kept.folder import checked_label
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, What
from linkgauge.model.documents.soak import Soaking
from linkgauge.model.errors import InputError
from linkgauge.model.names import hint
from linkgauge.model.operations.collective import (
    NUMBERS,
    REDUCTIONS,
    CollectiveChoice,
    colors_of,
)
from linkgauge.model.settings import (
    Blocks,
    EngineSettings,
    Profiler,
    Settings,
    Streams,
    Threads,
)
from linkgauge.model.transfer import PairSample, Seed
from linkgauge.model.units import format_size, parse_fraction, parse_sizes

from . import common
from .options import Field, Options, numbers, one_of, values_of, within

_T = TypeVar("_T", bound=str)

MOST_TEMPERATURE = 150.0
"""The highest temperature in °C that may be asked for; no accelerator works above it."""


def settings_of(
    profile: str,
    size: str | None,
    sampling: common.Sampling,
    engines: EngineSettings,
    simulated: common.Simulated | None = None,
) -> Settings:
    """Returns the profile's settings, changed by the options. Raises InputError if one is wrong."""
    simulation = None if simulated is None else simulated.simulation()
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}{hint(profile, PROFILES)}")
    if simulation is not None and engines.host_kernel is not None:
        raise InputError("--host-kernel needs real threads: a simulated machine has none")
    base, precision, max_time = PROFILES[profile], sampling.precision, sampling.max_time
    if max_time is not None:
        base = replace(base, max_time=max_time, rate_time=max_time)
    return replace(
        base,
        sizes=base.sizes if size is None else parse_sizes(size),
        precision=base.precision if precision is None else parse_fraction(precision),
        samples=sampling.samples,
        loops=sampling.loops,
        verify=not sampling.no_verify,
        engines=engines,
        timeout=sampling.timeout,
        simulation=simulation,
    )


def soaked(settings: Settings, duration: float | None, max_temperature: float | None) -> Settings:
    """Returns settings that repeat the plan for `duration` s. Raises InputError if invalid."""
    if duration is None:
        if max_temperature is not None:
            raise InputError("--max-temperature ends what --for repeats: give --for, too")
        return settings
    if settings.profiler is not None:
        raise InputError(f"--for: not under --{settings.profiler}")
    if max_temperature is not None and not 0 < max_temperature <= MOST_TEMPERATURE:
        raise InputError(f"--max-temperature {max_temperature:g}: give degrees Celsius, such as 85")
    return replace(settings, soak=Soaking(duration, max_temperature))


def under(profiling: common.Profiling, settings: Settings, out: Path | None) -> Settings:
    """Returns settings with the chosen profiler. Raises InputError if it cannot be used."""
    asked = [name for name in get_args(Profiler) if getattr(profiling, name)]
    if not asked:
        return settings
    if len(asked) > 1:
        raise InputError("--nsys and --ncu: choose one")
    if settings.simulation is not None:
        raise InputError(f"--{asked[0]}: a profiler sees nothing of a simulated machine")
    if out is None:
        raise InputError(f"--{asked[0]} keeps its files with the run: give --out, too")
    from linkgauge.engine.workers.profiled import find

    find(asked[0])
    return replace(settings, profiler=asked[0])


def engines_of(
    shape: common.Shape, host_kernel: str | None = None, numa_node: int | None = None
) -> EngineSettings:
    """Returns the settings of engines. Raises InputError for values that no engine supports."""
    if host_kernel is not None:
        from linkgauge.backends.host_kernels import check_kernel

        check_kernel(host_kernel)
    return EngineSettings(
        kernel=shape.kernel,
        blocks=within("--blocks", shape.blocks, Blocks),
        threads=within("--threads", shape.threads, Threads),
        streams=within("--streams", shape.streams, Streams),
        tuned=not shape.untuned,
        affinity=not shape.no_affinity,
        numa_node=numa_node,
        host_kernel=host_kernel,
        host_tuned=not shape.untuned,
    )


def pair_sample_of(count: int | None, seed: int | None) -> PairSample | None:
    """Returns the sample of pairs, or None without a count. Raises InputError for a wrong seed."""
    if count is None and seed is not None:
        raise InputError("--seed needs --sample-pairs")
    seed = within("--seed", seed, Seed)
    if count is None:
        return None
    return PairSample(count) if seed is None else PairSample(count, seed)


_MOST_RANKS = 4096


def choice_of(given: common.CollectiveOptions) -> CollectiveChoice:
    """Returns the chosen collectives. Raises InputError for values that no collective takes."""
    default = CollectiveChoice()
    if given.split is not None:
        _check_split(given.split)
    return CollectiveChoice(
        _listed("--types", given.types, NUMBERS) if given.types else default.types,
        _listed("--reductions", given.reductions, REDUCTIONS)
        if given.reductions
        else default.reductions,
        numbers("--roots", given.roots, "give ranks such as 0,1", 99_999, 0)
        if given.roots
        else default.roots,
        given.split,
        given.aggregate or 1,
        given.blocking,
        given.graphed,
        given.registered,
    )


def _listed(option: str, text: str, known: Iterable[_T]) -> tuple[_T, ...]:
    there = tuple(known)
    if text.strip() == "all":
        return there
    names = [name.strip() for name in text.split(",")]
    return tuple(dict.fromkeys(one_of(option, name, there) for name in names))


def _check_split(text: str) -> None:
    try:
        colors_of(text, _MOST_RANKS)
    except ValueError as error:
        raise InputError(f"--split {error}") from None


# A command's options as text, which a run keeps and `--resume` compares.

FREE = {
    "resume", "wait", "limits", "waivers", "utilization", "matrix", "whole", "no_verdict",
    "no_report",
}  # fmt: skip
"""Options that do not affect what is measured, or how."""


_SHARED = {
    "backend": "backends", "device": "devices", "label": "label", "out": "out", "wait": "wait",
}  # fmt: skip
"""The options that mean the same in every command that has them, with their names in a request."""


def request_of(
    asked: Options,
    what: What,
    settings: Settings,
    profile: str | None = None,
    **more: Any,
) -> RunRequest:
    """Makes a request. It records the options in effect as text, by flag, with the profile's values
    as defaults. `more` adds fields or replaces them."""
    values = vars(asked)
    shared = {field: values[name] for name, field in _SHARED.items() if name in values} | more
    shared["label"] = checked_label(shared["label"])
    shared["out"] = None if shared["out"] is None else str(shared["out"])
    of_profile = {
        "size": ",".join(f"{size}B" for size in settings.sizes),
        "precision": settings.precision,
        "max_time": settings.max_time,
    }
    if settings.sample_pairs is not None:
        of_profile["seed"] = settings.sample_pairs.seed
    return RunRequest(
        what=what,
        settings=settings,
        profile=None if values.get("size") else profile,
        command=command_of(asked),
        options=_written(values_of(asked), of_profile),
        **shared,
    )


def command_of(asked: Options) -> tuple[str, ...]:
    """Returns the command as typed; for a call of the Python API, the equivalent command."""
    return ("linkgauge", *map(_storable, asked.line.words))


def given(asked: Options) -> dict[str, str]:
    return _written(one for one in values_of(asked) if one[0] in asked.line.typed)


def _written(
    values: Iterable[tuple[str, Field, Any]], instead: Mapping[str, Any] = {}
) -> dict[str, str]:
    found = {}
    for name, field, typed in values:
        value = instead.get(name, typed)
        is_off = value is None or value is False or value in ([], ())
        if name not in FREE and not is_off:
            flag = next(iter(field.flags_of(name)), name)
            found[flag] = _storable(_write(flag, value))
    return found


def _storable(text: str) -> str:
    """Replaces characters that UTF-8 cannot encode. They come from a shell in another encoding."""
    return text.encode("utf-8", "replace").decode()


def _write(option: str, value: Any) -> str:
    if option in ("--size", "--buffer"):
        return ",".join(map(_short, parse_sizes(value)))
    if option in ("--for", "--budget") and isinstance(value, float):
        return f"{value:g}s"
    if option == "--precision" and isinstance(value, str):
        value = parse_fraction(value)
    if option == "--out":
        return str(Path(value).absolute())
    if value is True:  # the name of a flag says all
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(size: int) -> str:
    return format_size(size).replace(" ", "").replace("iB", "")
