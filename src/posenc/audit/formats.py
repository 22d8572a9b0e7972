"""Reports for machines that gate changes: SARIF, for code scanning."""

from typing import Any

from posenc.audit.report import Report

LEVELS = {"wrong": "error", "lossy": "warning", "note": "note"}


def sarif(report: Report, path: str | None = None) -> dict[str, Any]:
    """SARIF 2.1.0: one result a fault, at a file where one is known."""
    rules = [
        {"id": name, "help": {"text": text}}
        for name, text in {f.name: f.remedy or f.said for f in report.found}.items()
    ]
    place = {"artifactLocation": {"uri": path}, "region": {"startLine": 1}}
    results = [
        {
            "ruleId": fault.name,
            "level": LEVELS[fault.severity],
            "message": {"text": f"{report.subject}: {fault.said}"},
            "locations": [] if path is None else [{"physicalLocation": place}],
        }
        for fault in report.found
    ]
    return {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [
            {"tool": {"driver": {"name": "posenc check", "rules": rules}}, "results": results}
        ],
    }
