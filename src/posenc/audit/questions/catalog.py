"""Every question, by what it is asked of, in the order in which it is asked."""

from dataclasses import replace

from posenc.audit.questions import calls, grid, positions
from posenc.audit.questions.added import identity as added
from posenc.audit.questions.asking import Question
from posenc.audit.questions.bias import identity as bias
from posenc.audit.questions.bias import order
from posenc.audit.questions.rotary import rotation

KEEPS_DTYPE = replace(
    positions.keeps_positions_in_16_bits,
    name="keeps-the-dtype",
    asks="Do bfloat16 embeddings come back as bfloat16, with positions apart as far as can be?",
    after=positions.keeps_positions_in_16_bits.after | {"input-written"},
)
SAME_IN_TRAINING = replace(
    calls.same_however_it_is_given,
    name="same-in-training",
    asks="Is the bias in training, with dropout at 0, what it is otherwise?",
)

QUESTIONS: dict[str, tuple[Question, ...]] = {
    "added": (
        positions.encodes_the_sequence, calls.leaves_its_input_alone, calls.keeps_no_state,
        calls.same_however_it_is_given, positions.same_at_another_length,
        positions.positions_stay_apart, positions.decodes_as_it_prefills,
        positions.reads_every_position, positions.rows_have_their_own_positions,
        added.padding_moves_nothing, added.is_a_known_function, positions.is_precise,
        added.keeps_the_size_of_content, KEEPS_DTYPE, positions.survives_a_cast,
        positions.survives_autocast, calls.gradients_flow,
    ),
    "rotary": (
        positions.encodes_the_sequence, rotation.sides_stay_apart, calls.leaves_its_input_alone,
        calls.keeps_no_state, positions.same_at_another_length, rotation.is_a_rotation,
        rotation.keys_go_with_queries, rotation.is_relative, positions.positions_stay_apart,
        positions.decodes_as_it_prefills, positions.reads_every_position,
        calls.same_however_it_is_given, positions.rows_have_their_own_positions,
        rotation.has_known_frequencies, rotation.steps_are_alike, rotation.is_as_configured,
        positions.is_precise, positions.keeps_positions_in_16_bits, positions.survives_a_cast,
        positions.survives_autocast, calls.gradients_flow, grid.axes_go_as_configured,
    ),
    "bias": (
        order.hides_what_a_mask_should, order.tells_distances_apart,
        calls.leaves_its_input_alone, calls.keeps_no_state, order.same_at_another_length,
        order.knows_distance_alone, bias.favors_near_keys, bias.has_known_slopes,
        bias.has_known_buckets, order.decodes_as_it_prefills, order.reads_every_position,
        order.rows_have_their_own_padding, bias.stays_on_its_line, bias.keeps_distances_apart,
        order.hands_scores_on, SAME_IN_TRAINING, calls.gradients_flow,
    ),
}  # fmt: skip
