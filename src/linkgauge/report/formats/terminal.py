"""Text for people, coloured on a terminal: the default format."""

from __future__ import annotations

from . import TERMINAL, Format, late

FORMAT = Format(
    TERMINAL,
    "",
    {
        "run": late("report.live", "whole_run_lines"),
        "plan": late("report.dry_run", "plan_lines"),
        "machine": late("report.machine_report", "machine_lines"),
        "machine in detail": late("report.machine_report", "detailed_machine_lines"),
        "findings": late("report.findings_text", "diagnosis_lines"),
        "domain": late("report.domain_text", "domain_lines"),
        "benchmarks": late("report.benchmark_list", "benchmark_lines"),
        "names of benchmarks": late("report.benchmark_list", "overview_lines"),
        "comparisons": late("report.comparison_text", "comparison_lines"),
        "run comparison": late("report.run_comparison_text", "run_comparison_lines"),
        "every cell of runs": late("report.run_comparison_text", "every_cell_lines"),
        "gate": late("report.gate_text", "gate_lines"),
        "variation": late("report.variation_text", "variation_lines"),
        "scaling": late("report.scale_text", "scale_lines"),
        "history": late("report.history_text", "history_lines"),
        "trends": late("report.trend_text", "trend_lines"),
        "condition": late("report.health_text", "health_lines"),
    },
)
