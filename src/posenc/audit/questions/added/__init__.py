"""Questions to what adds to embeddings."""

from posenc.audit.questions.added.identity import (
    is_a_known_function,
    is_precise,
    keeps_the_size_of_content,
)
from posenc.audit.questions.added.inquiry import AddedInquiry
from posenc.audit.questions.added.order import (
    decodes_as_it_prefills,
    encodes_the_sequence,
    padding_moves_nothing,
    positions_stay_apart,
    same_at_another_length,
)
from posenc.audit.questions.added.places import reads_every_position
from posenc.audit.questions.added.traces import (
    gradients_flow,
    keeps_no_state,
    keeps_the_dtype,
    leaves_its_input_alone,
    survives_a_cast,
    survives_autocast,
)
from posenc.audit.questions.added.ways import same_however_it_is_given
from posenc.audit.questions.asking import Question

__all__ = ["QUESTIONS", "AddedInquiry"]


QUESTIONS: tuple[Question, ...] = (
    encodes_the_sequence,
    leaves_its_input_alone,
    keeps_no_state,
    same_however_it_is_given,
    same_at_another_length,
    positions_stay_apart,
    decodes_as_it_prefills,
    reads_every_position,
    padding_moves_nothing,
    is_a_known_function,
    is_precise,
    keeps_the_size_of_content,
    keeps_the_dtype,
    survives_a_cast,
    survives_autocast,
    gradients_flow,
)
