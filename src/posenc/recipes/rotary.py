"""Language models whose layers all turn queries and keys alike."""

from collections.abc import Sequence

from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.scores.temperature import Temperature
from posenc.frequencies import Geometric, Llama3, LongRoPE, Schedule, YaRN


def llama2(head_dim: int = 128) -> Positional:
    """Llama 1 and 2, all sizes: base 10000.

    Reference: Touvron et al. 2023 (arXiv:2307.09288).
    """
    return Positional(queries_keys=Rotary(Geometric(head_dim)))


def llama3(head_dim: int = 128, *, factor: float | None = None) -> Positional:
    """Llama 3: base 500000, and from 3.1 on its own rescaling of 8192 trained tokens.

    Args:
        head_dim: 128; 64 in Llama 3.2 1B.
        factor: None in Llama 3.0, 8 in 3.1 and 3.3, 32 in the 1B and 3B models of 3.2.

    Reference: Grattafiori et al. 2024, "The Llama 3 Herd of Models", section 3.2
    (arXiv:2407.21783).
    """
    plain = Geometric(head_dim, 500_000.0)
    return Positional(queries_keys=Rotary(plain if factor is None else Llama3(plain, factor)))


def mistral(head_dim: int = 128, *, base: float = 1e6) -> Positional:
    """Mistral 7B from v0.2 on: base 10^6; v0.1 has 10000 (and a window of 4096).

    Reference: Jiang et al. 2023 (arXiv:2310.06825).
    """
    return Positional(queries_keys=Rotary(Geometric(head_dim, base)))


def qwen2(head_dim: int = 128, *, factor: float | None = None) -> Positional:
    """Qwen2 and Qwen2.5: base 10^6, trained to 32768 tokens; extended with YaRN.

    Args:
        head_dim: 128; 64 in the 0.5B models.
        factor: None as published; 4 for 131072 tokens, as the model cards advise.

    Reference: Yang et al. 2024, "Qwen2 Technical Report", section 3.2 (arXiv:2407.10671).
    """
    return Positional(queries_keys=Rotary(_extended(Geometric(head_dim, 1e6), factor, 32768)))


def qwen3(head_dim: int = 128, *, base: float = 1e6, factor: float | None = None) -> Positional:
    """Qwen3: base 10^6, trained to 32768 tokens; extended with YaRN.

    Args:
        base: 10^6; in the models of July 2025, which reach 262144 tokens without YaRN, 5·10^6, and
            10^7 in that of 30B.
        factor: None as published; 4 for 131072 tokens, as the model cards advise.

    Reference: Yang et al. 2025, "Qwen3 Technical Report", section 3.2 (arXiv:2505.09388).
    """
    return Positional(queries_keys=Rotary(_extended(Geometric(head_dim, base), factor, 32768)))


def gpt_neox(head_dim: int = 96) -> Positional:
    """GPT-NeoX-20B, and Pythia: the first quarter of a head turns, base 10000.

    Reference: Black et al. 2022, section 2.1 (arXiv:2204.06745).
    """
    return Positional(queries_keys=Rotary(Geometric(head_dim // 4), head_dim=head_dim))


def gptj(head_dim: int = 256, *, rotated: int = 64) -> Positional:
    """GPT-J-6B: 64 of 256 channels turn, neighbors in pairs, base 10000.

    Reference: Wang & Komatsuzaki 2021, GPT-J-6B.
    """
    rotary = Rotary(Geometric(rotated), head_dim=head_dim, pairing="interleaved")
    return Positional(queries_keys=rotary)


def cohere(head_dim: int = 128, *, base: float = 8e6) -> Positional:
    """Command R (35B, v01): neighbors in pairs, base 8·10^6; 75·10^6 in Command R+.

    Reference: Cohere 2024, the configuration of c4ai-command-r-v01.
    """
    return Positional(queries_keys=Rotary(Geometric(head_dim, base), pairing="interleaved"))


def deepseek_v3(heads: int | None = 128, *, factor: float = 40.0) -> Positional:
    """DeepSeek-V3 (671B): the last 64 of 192 channels turn, YaRN from 4096 tokens by 40.

    Scores are multiplied with (0.1 · ln 40 + 1)², the ``Temperature`` here. With ``heads=None`` it
    is left out, for a softmax scale of 192^(−1/2) · ``rotary.frequencies.softmax_factor``.

    Reference: DeepSeek-AI 2024, section 4.3 (arXiv:2412.19437).
    """
    yarn = YaRN(Geometric(64), factor, trained_length=4096, mscale=1.0, mscale_all_dim=1.0)
    rotary = Rotary(yarn, head_dim=192, pairing="interleaved", rotated="suffix")
    scores = () if heads is None else Temperature(heads, scale=yarn.softmax_factor)
    return Positional(queries_keys=rotary, scores=scores)


def phi3(
    head_dim: int = 96,
    *,
    short: Sequence[float] | None = None,
    long: Sequence[float] | None = None,
    length: int | None = None,
    longest: int | None = None,
) -> Positional:
    """Phi-3-mini: base 10000; the 128k models divide each frequency by a searched number.

    Args:
        head_dim: 96; 128 in Phi-3-medium.
        short: ``short_factor`` of the model's configuration, one a pair; None for the 4k models.
        long: ``long_factor``; both lists are given, or neither.
        length: Of the sequences: the short list counts up to 4096 tokens, the default.
        longest: What the model is extended to, 131072; it makes the attention factor.

    Reference: Abdin et al. 2024, section 2 (arXiv:2404.14219); Ding et al. 2024, "LongRoPE"
    (arXiv:2402.13753).
    """
    schedule: Schedule = Geometric(head_dim)
    if short is not None or long is not None or length is not None:
        lists = tuple(short or ()), tuple(long or ())
        longrope = LongRoPE(schedule, *lists, 4096, factor=(longest or 131072) / 4096)
        schedule = longrope.at(length or 4096)
    return Positional(queries_keys=Rotary(schedule))


def gpt_oss(head_dim: int = 64) -> Positional:
    """gpt-oss 20B and 120B: base 150000, YaRN from 4096 tokens by 32, its borders not rounded.

    Reference: OpenAI 2025, "gpt-oss model card", section 2.2 (arXiv:2508.10925).
    """
    yarn = YaRN(Geometric(head_dim, 150_000.0), 32.0, trained_length=4096, truncate=False)
    return Positional(queries_keys=Rotary(yarn))


def _extended(plain: Geometric, factor: float | None, trained_length: int) -> Schedule:
    return plain if factor is None else YaRN(plain, factor, trained_length)
