"""``patch``: our rotary encoding inside a loaded model, admitted by measuring."""

from posenc.interop.patching.admission import Measurement
from posenc.interop.patching.angles import ExactAngles
from posenc.interop.patching.patch import Patch, patch, replaced, unpatch

__all__ = ["ExactAngles", "Measurement", "Patch", "patch", "replaced", "unpatch"]
