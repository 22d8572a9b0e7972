"""Questions that are asked alike in every place."""

from posenc.audit.questions.generic.calls import (
    gradients_flow,
    is_precise,
    keeps_16_bits,
    keeps_no_state,
    leaves_its_input_alone,
    same_however_it_is_given,
    survives_a_cast,
    survives_autocast,
)
from posenc.audit.questions.generic.order import (
    decodes_as_it_prefills,
    encodes_the_sequence,
    positions_stay_apart,
    reads_every_position,
    rows_have_their_own_positions,
    same_at_another_length,
)

__all__ = [
    "decodes_as_it_prefills",
    "encodes_the_sequence",
    "gradients_flow",
    "is_precise",
    "keeps_16_bits",
    "keeps_no_state",
    "leaves_its_input_alone",
    "positions_stay_apart",
    "reads_every_position",
    "rows_have_their_own_positions",
    "same_at_another_length",
    "same_however_it_is_given",
    "survives_a_cast",
    "survives_autocast",
]
