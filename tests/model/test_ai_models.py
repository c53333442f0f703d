"""The models of AI workloads: how many parameters they have, and what work they take."""

import pytest

from linkgauge.model.operations.workload import MODELS, NUMBER_BYTES


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("10m", 9e6, 12e6), ("100m", 90e6, 110e6), ("1b", 0.95e9, 1.1e9), ("3b", 2.6e9, 3e9)],
)
def test_a_model_is_of_the_size_that_its_name_says(name, low, high):
    shape = MODELS[name]
    assert low <= shape.parameters + shape.embedding <= high
    assert shape.heads % shape.kv_heads == 0
    assert shape.head * shape.heads == shape.hidden


def test_parameters_are_those_of_the_matrices_and_norms_written_out():
    shape = MODELS["1b"]  # Llama 3.2 1B: 2048 wide, 32 heads of 64, 8 of keys and values
    attention = 2048 * 2048 + 2 * 2048 * 512 + 2048 * 2048
    layer = attention + 3 * 2048 * 8192 + 2 * 2048
    assert shape.layer_parameters == layer
    assert shape.parameters == 16 * layer + 2048
    assert shape.embedding == 32000 * 2048


def test_a_pass_takes_two_operations_a_parameter_and_token_and_attention_what_is_not_masked():
    shape = MODELS["10m"]
    # Two tokens: the first attends to itself, the second to both; 2 products of 256 numbers each.
    attention = 12 * 2 * 256 * 3
    assert shape.prefill_operations(1, 2) == 2 * (shape.parameters * 2 + attention)
    assert shape.prefill_operations(5, 2) == 5 * shape.prefill_operations(1, 2)


def test_decoding_token_by_token_takes_as_many_operations_as_a_pass_over_all_of_them():
    shape = MODELS["100m"]
    one_by_one = sum(shape.decode_operations(3, context) for context in range(1, 11))
    assert one_by_one == shape.prefill_operations(3, 10)


def test_a_step_of_decoding_reads_all_weights_and_the_keys_and_values_of_its_context():
    shape = MODELS["3b"]
    weights = (shape.parameters + shape.embedding) * 2
    cached = 13 * 2 * 8 * 128 * 2  # bytes of a token: layers, keys and values, heads, bf16
    assert shape.decode_bytes(4, 1000, "bf16") == weights + 4 * 1000 * cached
    assert shape.decode_bytes(1, 1, "fp32") == 2 * shape.decode_bytes(1, 1, "fp16")
    assert set(NUMBER_BYTES.values()) == {2, 4}


def test_training_takes_three_times_the_operations_of_a_pass():
    shape = MODELS["10m"]
    assert shape.training_operations(2, 64) == 3 * shape.prefill_operations(2, 64)
