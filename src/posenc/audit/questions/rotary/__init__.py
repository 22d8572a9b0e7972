"""Questions to what rotates queries and keys."""

from posenc.audit.questions import generic
from posenc.audit.questions.asking import Question
from posenc.audit.questions.rotary.identity import has_known_frequencies, is_as_configured
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.questions.rotary.rotation import (
    is_a_rotation,
    is_relative,
    keys_go_with_queries,
    sides_stay_apart,
    steps_are_alike,
)

__all__ = ["QUESTIONS", "RotaryInquiry"]

QUESTIONS: tuple[Question, ...] = (
    generic.encodes_the_sequence,
    sides_stay_apart,
    generic.leaves_its_input_alone,
    generic.keeps_no_state,
    generic.same_at_another_length,
    is_a_rotation,
    is_relative,
    generic.positions_stay_apart,
    generic.decodes_as_it_prefills,
    generic.reads_every_position,
    keys_go_with_queries,
    generic.same_however_it_is_given,
    generic.rows_have_their_own_positions,
    has_known_frequencies,
    steps_are_alike,
    is_as_configured,
    generic.is_precise,
    generic.keeps_16_bits.of(
        "keeps-positions-in-16-bits",
        "Are bfloat16 queries turned as float32 ones are, up to their own rounding?",
    ),
    generic.survives_a_cast,
    generic.survives_autocast,
    generic.gradients_flow,
)
