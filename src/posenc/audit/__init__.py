"""Somebody else's code, measured: what it is, and which known faults it has.

A pass means that something was asked and measured. What could not be asked is listed with the
reason, and a run that could ask nothing essential ends with status 2.

A *subject* is a source of fresh copies of the thing: the caller's own object is never run, cast or
moved. An *adapter* calls it, by every form and layout that its parameters fit, and sees what is
added to embeddings, how queries and keys are rotated, or which bias a score receives. Its
*identity* is found by fitting against our own encodings, which are exact. Each *question* comes to
a *verdict*: passed, failed, or not asked. A *fault* has a name for scripts and a severity: wrong,
lossy, or a note. A *report* has status 0 where nothing is wrong, 1 where something is (or is lossy,
if strict), and 2 where nothing essential could be asked.

``parity`` compares two implementations, or one and a *profile* (``posenc.numerics.arithmetic``), on
the same queries and keys.
"""

from posenc.audit.check import check
from posenc.audit.parity import Parity, parity
from posenc.audit.report import CannotCheckError, Fault, Report, Verdict

__all__ = ["CannotCheckError", "Fault", "Parity", "Report", "Verdict", "check", "parity"]
