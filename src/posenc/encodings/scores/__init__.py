"""Place three: encodings that change the attention scores before softmax."""

from posenc.encodings.scores.additive_grape import AdditiveGRAPE
from posenc.encodings.scores.alibi import ALiBi
from posenc.encodings.scores.cable import CABLE
from posenc.encodings.scores.cope import CoPE
from posenc.encodings.scores.cyclic import Cyclic
from posenc.encodings.scores.dape import DAPE
from posenc.encodings.scores.dape_v2 import DAPEv2
from posenc.encodings.scores.deberta import DeBERTa
from posenc.encodings.scores.decomposed import DecomposedRelative
from posenc.encodings.scores.fire import FIRE
from posenc.encodings.scores.forgetting import Forgetting, forgetting_bias
from posenc.encodings.scores.kerple import KERPLE, KERPLEWeight
from posenc.encodings.scores.path import PaTH
from posenc.encodings.scores.relative_logits import RelativeLogits
from posenc.encodings.scores.remapped_rotary import RemappedRotary
from posenc.encodings.scores.repo import RePo
from posenc.encodings.scores.sandwich import Sandwich
from posenc.encodings.scores.selective_rope import SelectiveRoPE
from posenc.encodings.scores.shaw import Shaw
from posenc.encodings.scores.swin import SwinBias
from posenc.encodings.scores.swin_v2 import SwinV2Bias
from posenc.encodings.scores.t5 import T5Bias
from posenc.encodings.scores.temperature import LogTemperature, Temperature
from posenc.encodings.scores.transformer_xl import TransformerXL

__all__ = [
    "CABLE",
    "DAPE",
    "FIRE",
    "KERPLE",
    "ALiBi",
    "AdditiveGRAPE",
    "CoPE",
    "Cyclic",
    "DAPEv2",
    "DeBERTa",
    "DecomposedRelative",
    "Forgetting",
    "KERPLEWeight",
    "LogTemperature",
    "PaTH",
    "RePo",
    "RelativeLogits",
    "RemappedRotary",
    "Sandwich",
    "SelectiveRoPE",
    "Shaw",
    "SwinBias",
    "SwinV2Bias",
    "T5Bias",
    "Temperature",
    "TransformerXL",
    "forgetting_bias",
]
