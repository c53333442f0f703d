"""A check is a function from the evidence to findings. It finds nothing where a fact is unknown."""

from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding

LEAST = 0.05
"""The share of the host's memory below which buffers of benchmarks compete with caches."""


def check_free_memory(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.machine.host
    if host.memory_total is None or host.memory_available is None:
        return
    share = host.memory_available / host.memory_total
    if share < LEAST:
        found = f"only {share:.1%} of the host's memory is free"
        why = "the kernel moves or drops pages while a benchmark runs, and figures vary"
        yield Finding("free-memory", "warn", "host", found, why, ("ps aux --sort -rss | head",))
