"""Questions to what rotates queries and keys."""

from posenc.audit.questions.asking import Question
from posenc.audit.questions.rotary.identity import (
    has_known_frequencies,
    is_as_configured,
    is_precise,
)
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.questions.rotary.order import (
    decodes_as_it_prefills,
    encodes_the_sequence,
    positions_stay_apart,
    rows_have_their_own_positions,
    same_at_another_length,
)
from posenc.audit.questions.rotary.places import reads_every_position
from posenc.audit.questions.rotary.rotation import (
    is_a_rotation,
    is_relative,
    keys_go_with_queries,
    sides_stay_apart,
    steps_are_alike,
)
from posenc.audit.questions.rotary.traces import (
    gradients_flow,
    keeps_no_state,
    keeps_positions_in_16_bits,
    leaves_its_input_alone,
    survives_a_cast,
    survives_autocast,
)
from posenc.audit.questions.rotary.ways import same_however_it_is_given

__all__ = ["QUESTIONS", "RotaryInquiry"]


QUESTIONS: tuple[Question, ...] = (
    encodes_the_sequence,
    sides_stay_apart,
    leaves_its_input_alone,
    keeps_no_state,
    same_at_another_length,
    is_a_rotation,
    is_relative,
    positions_stay_apart,
    decodes_as_it_prefills,
    reads_every_position,
    keys_go_with_queries,
    same_however_it_is_given,
    rows_have_their_own_positions,
    has_known_frequencies,
    steps_are_alike,
    is_as_configured,
    is_precise,
    keeps_positions_in_16_bits,
    survives_a_cast,
    survives_autocast,
    gradients_flow,
)
