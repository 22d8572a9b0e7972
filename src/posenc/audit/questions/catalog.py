"""Every question, by what it is asked of, in the order in which it is asked."""

from dataclasses import replace

from posenc.audit.questions import calls, grid, order, precision
from posenc.audit.questions.added import identity as added
from posenc.audit.questions.asking import Question
from posenc.audit.questions.bias import identity as bias
from posenc.audit.questions.bias import order as of_order
from posenc.audit.questions.rotary import identity as rotary
from posenc.audit.questions.rotary import rotation

KEEPS_DTYPE = replace(
    precision.keeps_positions_in_16_bits,
    name="keeps-the-dtype",
    asks="Do bfloat16 embeddings come back as bfloat16, with positions apart as far as can be?",
    after=precision.keeps_positions_in_16_bits.after | {"input-written"},
)
SAME_IN_TRAINING = replace(
    calls.same_however_it_is_given,
    name="same-in-training",
    asks="Is the bias in training, with dropout at 0, what it is otherwise?",
)

QUESTIONS: dict[str, tuple[Question, ...]] = {
    "added": (
        order.encodes_the_sequence, calls.leaves_its_input_alone, calls.keeps_no_state,
        calls.same_however_it_is_given, order.same_at_another_length, order.positions_stay_apart,
        order.decodes_as_it_prefills, order.reads_every_position,
        order.rows_have_their_own_positions, added.padding_moves_nothing,
        added.is_a_known_function, precision.is_precise, added.keeps_the_size_of_content,
        KEEPS_DTYPE, precision.survives_a_cast, precision.survives_autocast, calls.gradients_flow,
    ),
    "rotary": (
        order.encodes_the_sequence, rotation.sides_stay_apart, calls.leaves_its_input_alone,
        calls.keeps_no_state, order.same_at_another_length, rotation.is_a_rotation,
        rotation.keys_go_with_queries, rotation.is_relative, order.positions_stay_apart,
        order.decodes_as_it_prefills, order.reads_every_position, calls.same_however_it_is_given,
        order.rows_have_their_own_positions, rotary.has_known_frequencies,
        rotation.steps_are_alike, rotary.is_as_configured, precision.is_precise,
        precision.keeps_positions_in_16_bits,
        precision.survives_a_cast, precision.survives_autocast, calls.gradients_flow,
        grid.axes_go_as_configured,
    ),
    "bias": (
        of_order.hides_what_a_mask_should, of_order.tells_distances_apart,
        calls.leaves_its_input_alone, calls.keeps_no_state, of_order.same_at_another_length,
        of_order.knows_distance_alone, bias.favors_near_keys, bias.has_known_slopes,
        bias.has_known_buckets, of_order.decodes_as_it_prefills, of_order.reads_every_position,
        of_order.rows_have_their_own_padding, bias.stays_on_its_line, bias.keeps_distances_apart,
        of_order.hands_scores_on, SAME_IN_TRAINING, calls.gradients_flow,
    ),
}  # fmt: skip
