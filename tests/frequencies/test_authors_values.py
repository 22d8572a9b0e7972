"""Schedules against numbers that came out of their authors' code, kept as they were printed."""

import pytest
import torch

from posenc import Rotary
from posenc.frequencies import Clipped, DyNTK, DyYaRN, Geometric, Resonance, RIFLEx, YaRN

SINGLE = {"rtol": 0, "atol": 5e-7}


def numbers(text: str) -> torch.Tensor:
    return torch.tensor([float(number) for number in text.split()], dtype=torch.float64)


@pytest.mark.parametrize(
    ("dype", "cosines", "sines"),
    [
        (
            DyYaRN(Geometric(12), 64),
            """0.5777531862 1.04768002 1.068653226 1.069301367 1.069314122 1.069314718 0.6152040958
            1.118276477 1.13822484 1.13862586 1.138629317 1.138629436""",
            """0.8997972608 0.2140107006 0.03760717064 0.005346551538 0.001151884208 0.0002481659758
            0.9581236243 0.2143241316 0.03035104275 0.002846570686 0.0006132756826
            0.0001321262389""",
        ),
        (
            DyNTK(Geometric(12), 64),
            """0.5403022766 0.9798642397 0.9991837144 0.9999670386 0.9999986887 0.9999999404
            0.5403022766 0.982463181 0.9993813634 0.9999782443 0.9999992251 1""",
            """0.8414709568 0.1996648461 0.04039638117 0.00812243484 0.001632755506 0.0003282098914
            0.8414709568 0.1864567697 0.03516941145 0.006597491913 0.001237397431
            0.0002320794447""",
        ),
    ],
    ids=["yarn", "ntk"],
)
def test_dype(dype, cosines, sines):
    """guyyariv/DyPE@436fe61, flux/transformer_flux.py: FluxPosEmbed(10000, [4, 12, 12], method=…).

    At half of the time, for 128 rows and 256 columns: cosines and sines of row 1 and column 1.
    """
    tables = [Rotary(dype.at(length, 0.5)).table([1], dtype=torch.float64)[0]
              for length in (128, 256)]  # fmt: skip
    made = torch.cat(tables, dim=-1)
    torch.testing.assert_close(made, torch.stack([numbers(cosines), numbers(sines)]), **SINGLE)


def test_riflex():
    """thu-ml/RIFLEx@18e0bc3, riflex_utils.py: get_1d_rotary_pos_embed_riflex with HunyuanVideo's 16
    channels and base 256, k=4 and L_test=66: frame 65."""
    made = Rotary(RIFLEx(Geometric(16, base=256.0), 4, 66)).table([65], dtype=torch.float64)[0]
    cosines = """-0.562453866 0.4677318335 -0.85665977 0.7557497025 -0.6050980091 -0.4443545938
        0.5270888805 0.8738102913"""
    sines = """0.8268286586 0.8838704228 -0.5158818364 -0.6548606157 -0.7961509824 0.895851016
        0.8498101234 0.4862669408"""
    theirs = torch.stack([numbers(cosines), numbers(sines)])
    torch.testing.assert_close(made, theirs, rtol=0, atol=1e-5)  # 65 times an angle in float32


def test_resonance_of_yarn():
    """sheryc/resonance_rope@4a7f5a7, llama_finetuning/scaled_rope.

    LlamaYaRNScaledResonanceRotaryEmbedding(32, original_max_position_embeddings=128, scale=4):
    its r_wavelengths and mscale.
    """
    made = Resonance(YaRN(Geometric(32), 4, 128))
    assert made.wavelengths() == (
        6, 13, 26, 57, 126, 298, 795, 1413, 2513, 4469, 7948, 14133, 25133, 44693, 79477, 141332
    )  # fmt: skip
    assert made.attention_factor == pytest.approx(1.138629436111989, rel=1e-15)


def test_clipped():
    """hrlics/CoPE@ed52ba5, modeling_cope.py: LlamaRotaryEmbedding with use_cope, over the default
    frequencies of 64 channels and base 500000: its inv_freq from the tenth on."""
    theirs = """0.0165604409 0.0109895291 0.00729266508 0.00480641937 0.00312444358 0.00200269162
        0.00126511324 0.000787042489 0.000481698342 0.000289641146 0.000170786079 9.85100851e-05
        5.53983227e-05 3.02345052e-05 1.59098017e-05 7.99461395e-06 3.77903052e-06 1.63854008e-06
        6.21516847e-07 1.8541256e-07 3.0971183e-08 0"""
    made = torch.tensor([float(w) for w in Clipped(Geometric(64, 500_000)).radians()[10:]])
    torch.testing.assert_close(made.double(), numbers(theirs), rtol=1e-5, atol=1e-12)
