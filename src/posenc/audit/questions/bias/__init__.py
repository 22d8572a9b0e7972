"""Questions to what gives a bias for scores."""

from posenc.audit.questions import generic
from posenc.audit.questions.asking import Question
from posenc.audit.questions.bias import identity, order, scores
from posenc.audit.questions.bias.inquiry import BiasInquiry

__all__ = ["QUESTIONS", "BiasInquiry"]

QUESTIONS: tuple[Question, ...] = (
    order.hides_what_a_mask_should,
    order.tells_distances_apart,
    generic.leaves_its_input_alone,
    scores.keeps_no_state,
    order.same_at_another_length,
    order.knows_distance_alone,
    identity.favors_near_keys,
    identity.has_known_slopes,
    identity.has_known_buckets,
    order.decodes_as_it_prefills,
    order.reads_every_position,
    order.rows_have_their_own_padding,
    identity.stays_on_its_line,
    identity.keeps_distances_apart,
    scores.hands_scores_on,
    scores.same_in_training,
    generic.gradients_flow,
)
