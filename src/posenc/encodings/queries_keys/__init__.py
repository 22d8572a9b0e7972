"""Place two: encodings of queries and keys inside attention."""

from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.axial_forms import AxialForm
from posenc.encodings.queries_keys.blocks import ComRoPE, LieRE
from posenc.encodings.queries_keys.counter_rotary import CounterRotary
from posenc.encodings.queries_keys.dinov3 import DINOv3Rotary
from posenc.encodings.queries_keys.directed import DirectedRotary
from posenc.encodings.queries_keys.fope import FoPE
from posenc.encodings.queries_keys.grape import GRAPE
from posenc.encodings.queries_keys.ltx import LTXRotary
from posenc.encodings.queries_keys.mixed import RoPEMixed
from posenc.encodings.queries_keys.moving import move_keys, rerotate
from posenc.encodings.queries_keys.multimodal import MHRoPE, MultimodalRotary
from posenc.encodings.queries_keys.pope import PoPE
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.start_tokens import StartTokenRotary
from posenc.encodings.queries_keys.string import CayleySTRING, CirculantSTRING
from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.encodings.queries_keys.vjepa2 import VJEPA2Rotary
from posenc.encodings.queries_keys.xpos import XPos

__all__ = [
    "GRAPE",
    "AxialForm",
    "AxialRotary",
    "CayleySTRING",
    "CirculantSTRING",
    "ComRoPE",
    "CounterRotary",
    "DINOv3Rotary",
    "DirectedRotary",
    "FoPE",
    "LTXRotary",
    "LieRE",
    "MHRoPE",
    "MultimodalRotary",
    "PoPE",
    "QueryTemperature",
    "RoPEMixed",
    "Rotary",
    "StartTokenRotary",
    "VJEPA2Rotary",
    "XPos",
    "move_keys",
    "rerotate",
]
