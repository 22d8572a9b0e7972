"""Somebody else's code, measured: what it is, and which known faults it has.

One rule holds everything together: **a pass is a thing that was asked and measured**. What could
not be asked is said, with the reason; a run in which nothing essential could be asked has learned
nothing, and says so by its status.

==============  ==================================================================================
Subject         what is checked, as a source of fresh copies: the caller's own object is never run,
                cast or moved. ``subjects`` builds it, and guesses missing widths in the open.
Adapter         how it is called. ``signatures`` reads what its parameters are called; ``adapters``
                try every form and layout that fits and *measure which axis carries the position*.
                The first call that does not raise proves nothing. An adapter turns all forms into
                three: what is **added** to embeddings, how queries and keys are **rotated**, which
                **bias** a score receives; tables of sines are one of the first two.
Identity        what it is, by fitting it against our own encodings, which are exact: convention,
                base, scaling, pairing, rotated width, slopes, buckets. ``identity`` has one file
                for each place.
Question        one thing to ask of one place, in ``questions``: its name, the sentence that it
                asks, and whether it is essential. The answer is a measurement, or faults.
Verdict         a question with its outcome: passed (and what was measured), failed (and the
                faults), not asked (and why).
Fault           a name for scripts, a severity, the number that shows it, the smallest
                reproduction, and what to do. *wrong*: another function than any known one, or one
                that breaks order, decoding, padding or sharing. *lossy*: the right formula, with
                precision lost. *note*: worth knowing, no fault.
Report          all of that, as text, JSON or SARIF. Status 0: asked, and nothing wrong.
                1: something is wrong (or lossy, if strict). 2: nothing essential could be asked.
==============  ==================================================================================

``parity`` compares two subjects, or a subject and a *profile* (``posenc.numerics.arithmetic``), on
the same queries and keys: ``comparing`` says how each is run, where their bits part, and what that
does to scores.

``--length`` bounds what precision is judged by: an encoding built for 8,192 positions need not be
right at a million.
"""

from posenc.audit.check import check
from posenc.audit.parity import Parity, parity
from posenc.audit.report import CannotCheckError, Fault, Report, Verdict

__all__ = ["CannotCheckError", "Fault", "Parity", "Report", "Verdict", "check", "parity"]
