"""Somebody else's code, measured: what it is, and which known faults it has.

A pass means that something was asked and measured. What could not be asked is listed with the
reason, and a run that could ask nothing essential ends with status 2.

==============  ==================================================================================
Subject         What is checked, as a source of fresh copies: the caller's own object is never run,
                cast or moved. Missing widths are guessed by the names of arguments, and told.
Adapter         How it is called. ``signatures`` reads the names of its parameters; ``adapters`` try
                every form and layout that fits and measure which axis carries the position. An
                adapter sees one of three things: what is **added** to embeddings, how queries and
                keys are **rotated**, or which **bias** a score receives.
Identity        What it is, by fitting it against our own encodings, which are exact.
Question        One thing to ask, in ``questions``: its name, its sentence, whether it is essential.
                The answer is a measurement or faults.
Verdict         A question with its outcome: passed, failed, or not asked.
Fault           A name for scripts, a severity (*wrong*, *lossy*, or *note*), the number that shows
                it, the smallest reproduction, and what to do.
Report          All of that, as text, JSON or SARIF. Status 0: nothing wrong. 1: something is wrong
                (or lossy, if strict). 2: nothing essential could be asked.
==============  ==================================================================================

``parity`` compares two implementations, or one and a *profile* (``posenc.numerics.arithmetic``), on
the same queries and keys.
"""

from posenc.audit.check import check
from posenc.audit.parity import Parity, parity
from posenc.audit.report import CannotCheckError, Fault, Report, Verdict

__all__ = ["CannotCheckError", "Fault", "Parity", "Report", "Verdict", "check", "parity"]
