"""``patch``: our rotary encoding inside a loaded model, admitted by measuring."""

from posenc.interop.patching.angles import ExactAngles
from posenc.interop.patching.measuring import Measurement
from posenc.interop.patching.patch import Patch, patch, replaced, unpatch
from posenc.interop.patching.rows import ExactRows

__all__ = ["ExactAngles", "ExactRows", "Measurement", "Patch", "patch", "replaced", "unpatch"]
