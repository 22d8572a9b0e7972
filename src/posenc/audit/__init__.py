"""Questions to implementations that do not know this package: what they do, and their faults."""

from posenc.audit.check import check
from posenc.audit.report import CannotCheckError, Fault, Report

__all__ = ["CannotCheckError", "Fault", "Report", "check"]
