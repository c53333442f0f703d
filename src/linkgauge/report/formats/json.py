"""JSON: for a run, the document of docs/run.schema.json."""

from __future__ import annotations

from . import Format, late

_AS_IT_IS = late("report.files", "json_document")
FORMAT = Format(
    "json",
    "Write the document to stdout, and all else to stderr.",
    {
        "run": _AS_IT_IS,
        "plan": _AS_IT_IS,
        "machine": _AS_IT_IS,
        "variation": _AS_IT_IS,
        "scaling": _AS_IT_IS,
        "findings": late("report.findings_text", "diagnosis_document"),
        "domain": late("report.domain_text", "domain_document"),
        "benchmarks": late("report.benchmark_list", "benchmarks_document"),
        "summary": late("report.summary_text", "summary_json"),
        "samples": late("report.summary_text", "samples_json"),
        "run comparison": late("report.run_comparison_text", "run_comparison_document"),
        "gate": late("report.gate_text", "gate_document"),
        "comparisons": late("report.comparison_text", "comparison_document"),
        "history": late("report.history_text", "history_document"),
        "trends": late("report.trend_text", "trend_document"),
        "condition": late("report.health_text", "condition_document"),
    },
)
