"""``patch``: our rotary encoding inside a loaded model, admitted by measuring."""

from posenc.interop.patching.patch import Patch, drop_rotary, patch, unpatch

__all__ = ["Patch", "drop_rotary", "patch", "unpatch"]
