"""Questions to what adds to embeddings."""

from posenc.audit.questions import generic
from posenc.audit.questions.added.identity import (
    is_a_known_function,
    keeps_the_size_of_content,
    padding_moves_nothing,
)
from posenc.audit.questions.added.inquiry import AddedInquiry
from posenc.audit.questions.asking import Question

__all__ = ["QUESTIONS", "AddedInquiry"]

QUESTIONS: tuple[Question, ...] = (
    generic.encodes_the_sequence,
    generic.leaves_its_input_alone,
    generic.keeps_no_state,
    generic.same_however_it_is_given,
    generic.same_at_another_length,
    generic.positions_stay_apart,
    generic.decodes_as_it_prefills,
    generic.reads_every_position,
    generic.rows_have_their_own_positions,
    padding_moves_nothing,
    is_a_known_function,
    generic.is_precise,
    keeps_the_size_of_content,
    generic.keeps_16_bits.of(
        "keeps-the-dtype",
        "Do bfloat16 embeddings come back as bfloat16, with positions apart as far as can be?",
        "input-written",
    ),
    generic.survives_a_cast,
    generic.survives_autocast,
    generic.gradients_flow,
)
