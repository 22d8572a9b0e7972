"""Reports for machines that gate changes: JUnit's XML, and SARIF for code scanning."""

from typing import Any
from xml.etree import ElementTree

from posenc.audit.report import Report, Verdict

LEVELS = {"wrong": "error", "lossy": "warning", "note": "note"}


def junit(report: Report) -> str:
    """One test case a question; what counts is a failure, what was not asked is skipped.

    Example:
        >>> junit(Report("mine", "rotary", "…"))[:30]
        '<testsuites><testsuite name="p'
    """
    unlearned = report.status == 2  # one case more, which is an error
    suites = ElementTree.Element("testsuites")
    failing = [v for v in report.verdicts if _counting(report, v)]
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name=f"posenc check {report.subject}",
        tests=str(len(report.verdicts) + unlearned),
        failures=str(len(failing)),
        errors=str(int(unlearned)),
        skipped=str(len(report.not_asked)),
    )
    for verdict in report.verdicts:
        case = ElementTree.SubElement(
            suite, "testcase", classname=report.subject, name=verdict.question
        )
        if verdict.outcome == "not asked":
            ElementTree.SubElement(case, "skipped", message=verdict.told)
        for said in _counting(report, verdict):
            ElementTree.SubElement(case, "failure", message=said).text = said
    if unlearned:
        case = ElementTree.SubElement(suite, "testcase", classname=report.subject, name="learned")
        ElementTree.SubElement(case, "error", message=report.conclusion)
    return ElementTree.tostring(suites, encoding="unicode")


def _counting(report: Report, verdict: Verdict) -> list[str]:
    severities = ("wrong", "lossy") if report.strict else ("wrong",)
    return [
        f"{fault.name}: {fault.said}"
        for fault in verdict.faults
        if fault.severity in severities and fault.name not in report.ignored
    ]


def sarif(report: Report, path: str | None = None) -> dict[str, Any]:
    """SARIF 2.1.0: one result a fault, at a file where one is known.

    Example:
        >>> sarif(Report("mine", "rotary", "…"))["runs"][0]["results"]
        []
    """
    rules = {fault.name: fault for fault in report.found}
    return {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "posenc check",
                        "rules": [
                            {"id": name, "help": {"text": fault.remedy or fault.said}}
                            for name, fault in rules.items()
                        ],
                    }
                },
                "results": [
                    {
                        "ruleId": fault.name,
                        "level": LEVELS[fault.severity],
                        "message": {"text": f"{report.subject}: {fault.said}"},
                        "locations": _locations(path),
                    }
                    for fault in report.found
                ],
            }
        ],
    }


def _locations(path: str | None) -> list[dict[str, Any]]:
    if path is None:
        return []
    place = {"artifactLocation": {"uri": path}, "region": {"startLine": 1}}
    return [{"physicalLocation": place}]
