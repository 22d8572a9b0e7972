"""Questions to what gives a bias for scores."""

from posenc.audit.questions.asking import Question
from posenc.audit.questions.bias.distance import (
    decodes_as_it_prefills,
    favors_near_keys,
    knows_distance_alone,
    reads_every_position,
    rows_have_their_own_padding,
    same_at_another_length,
    tells_distances_apart,
)
from posenc.audit.questions.bias.identity import (
    has_known_buckets,
    has_known_slopes,
    keeps_distances_apart,
    stays_on_its_line,
)
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.bias.masks import hides_what_a_mask_should
from posenc.audit.questions.bias.traces import (
    gradients_flow,
    hands_scores_on,
    keeps_no_state,
    leaves_its_input_alone,
    same_in_training,
)

__all__ = ["QUESTIONS", "BiasInquiry"]


QUESTIONS: tuple[Question, ...] = (
    hides_what_a_mask_should,
    tells_distances_apart,
    leaves_its_input_alone,
    keeps_no_state,
    same_at_another_length,
    knows_distance_alone,
    favors_near_keys,
    has_known_slopes,
    has_known_buckets,
    decodes_as_it_prefills,
    reads_every_position,
    rows_have_their_own_padding,
    stays_on_its_line,
    keeps_distances_apart,
    hands_scores_on,
    same_in_training,
    gradients_flow,
)
