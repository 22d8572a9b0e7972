"""How families of transformers cache what they rotate.

A name is a model type without ``_text``. All others cache whole rotated heads as ``keys``, in the
pairing of their code. The types for which this was measured are in ``measured.txt``.
"""

from typing import Literal

from posenc.interop.configurations import Configuration
from posenc.interop.rope_models import named
from posenc.numerics.pairing import Pairing

Held = Literal["keys", "values"]

LATENT = named(
    "axk1 axk2 bailing_hybrid deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa hy_v4 "
    "longcat_flash minicpm3 mistral4 mistral_large4 youtu"
)
"""Latent attention: ``keys`` are the latents, which nothing rotates, and ``values`` the one rotated
key that all heads share."""

REORDERED = named(
    "axk1 axk2 bailing_hybrid deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa longcat_flash "
    "mistral4 mistral_large4 youtu"
)
"""Models that rotate pairs 2i and 2i + 1, and hand them back as i and i + width/2."""


def held_in(config: Configuration) -> Held:
    """Which of a layer's two tensors is rotated.

    Example:
        >>> held_in(Configuration({}, "deepseek_v3")), held_in(Configuration({}, "llama"))
        ('values', 'keys')
    """
    return "values" if config.family in LATENT else "keys"


def pairing_in_cache(config: Configuration, pairing: Pairing) -> Pairing:
    """The pairing of rotated channels as they lie in the cache.

    Example:
        >>> pairing_in_cache(Configuration({}, "deepseek_v3"), "interleaved")
        'half'
    """
    return "half" if config.family in REORDERED else pairing
