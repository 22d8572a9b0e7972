"""``posenc inspect``: what it says of one file and of two, and what it refuses."""

import json
import re
from pathlib import Path

import pytest
from transformers import GptOssConfig

from posenc.inspection.rotary import inspect_config

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
}  # fmt: skip
GEMMA = {
    "model_type": "gemma3",
    "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 12,
                    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
}  # fmt: skip
SMOLLM = {"model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16,
          "num_hidden_layers": 8, "rope_theta": 5e6, "max_position_embeddings": 65536}  # fmt: skip
DEEPSEEK = {"model_type": "deepseek_v3", "num_hidden_layers": 3, "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128, "rope_theta": 1e4, "max_position_embeddings": 163840,
            "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                             "original_max_position_embeddings": 4096}}  # fmt: skip


@pytest.fixture
def written(tmp_path):
    """Writes a configuration, and gives its path."""

    def write(config: object, name: str = "config.json"):
        path = tmp_path / name
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        return path

    return write


def rows_of(text: str) -> list[list[str]]:
    """What is said, label and text, with wrapped lines joined."""
    rows: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(" " * 20):
            rows[-1][1] += " " + line.strip()
        elif line.startswith("  "):
            rows.append([line[2:20].strip(), line[20:].strip()])
    return rows


def test_llama_in_plain_words(run, written):
    ran = run("inspect", written(LLAMA))
    said = dict(rows_of(ran.out))
    assert ran.status == 0
    assert ran.out.splitlines()[0].endswith("config.json: llama, 32 layers")
    assert "layers 0-31\n" in ran.out
    assert said["frequencies"] == "base 500,000, llama3 × 8"
    assert said["length"] == "trained to 8,192, looked at up to 131,072"
    assert said["rotated"] == "all 128 channels of a head"
    assert said["pairing"] == "half: channels i and i + 64"
    assert said["attention factor"] == "1"
    assert said["softmax scale"] == "0.0883883"  # 1 / √128
    assert said["cast positions"].startswith("in bfloat16: 256 and 257 are one")


def test_text_and_json_tell_the_same_numbers(run, written):
    path = written(LLAMA)
    (group,) = json.loads(run("inspect", path, "--format", "json").out)["parts"][0]["layers"]
    numbers, library = group["rotary"], inspect_config(path).layers[0]
    said = dict(rows_of(run("inspect", path).out))
    assert group["layers"] == list(range(32))
    assert numbers["longest"] == library.longest
    assert numbers["precision"]["float32_error"] == library.precision.float32_error
    assert f"{library.longest:,.0f} positions in 64 pairs" in said["wavelengths"]
    assert said["turns"].startswith(f"{numbers['unfinished']} pairs complete none in 8,192")
    assert f"{numbers['precision']['float32_error']:.2g}" in said["float32 angles"]


@pytest.mark.parametrize(
    ("rope", "before", "now"),
    [
        ({"rope_type": "default"}, "", ""),
        ({"rope_type": "linear", "factor": 8.0}, " scaled", " scaled"),
        ({"rope_type": "linear", "factor": 1.0}, "", ""),
        ({"rope_type": "dynamic", "factor": 8.0}, " unscaled", " scaled"),
        ({"rope_type": "yarn", "factor": 8.0}, " unscaled", " scaled"),
        ({"rope_type": "proportional", "partial_rotary_factor": 0.5}, "", ""),
        ({"rope_type": "longrope", "short_factor": [1.0] * 64, "long_factor": [8.0] * 64},
         " by short factors", " by long ones"),
    ],
    ids=lambda value: value["rope_type"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_is_called_scaled_was_scaled(run, written, rope, before, now):
    lengths = {"max_position_embeddings": 4096, "rope_theta": 1e7}
    path = written({**LLAMA, **lengths, "rope_scaling": rope})
    said = dict(rows_of(run("inspect", path, "--length", 999_000).out))["turns"]
    assert re.fullmatch(rf"\d+ pairs? complete none in 4,096{before}; .* in 999,000{now}", said)


def test_json_of_pairs_that_do_not_turn_is_json(run, written):
    rope = {"rope_type": "proportional", "partial_rotary_factor": 0.0}
    config = {**LLAMA, "rope_scaling": None, "rope_parameters": rope}
    told = run("inspect", written(config), "--format", "json").out
    assert (
        json.loads(told, parse_constant=pytest.fail)["parts"][0]["layers"][0]["rotary"]["longest"]
        is None
    )


def test_layers_of_two_kinds_are_told_apart(run, written):
    ran = run("inspect", written(GEMMA))
    assert "layers 0-4, 6-10 (sliding_attention)\n" in ran.out
    assert "layers 5, 11 (full_attention)\n" in ran.out
    said = [text for label, text in rows_of(ran.out) if label == "frequencies"]
    assert said == ["base 10,000", "base 1,000,000, linear × 8"]


def test_layers_without_an_encoding_are_named(run, written):
    assert "layers 3, 7\n  no encoding of positions\n" in run("inspect", written(SMOLLM)).out


def test_deepseek_has_a_wider_head_another_pairing_and_a_sharper_softmax(run, written):
    said = dict(rows_of(run("inspect", written(DEEPSEEK)).out))
    assert said["rotated"] == "the last 64 of 192 channels of a head"
    assert said["pairing"] == "interleaved: channels 2i and 2i + 1"
    assert said["softmax scale"] == "0.135234"  # (0.1 ln 40 + 1)² / √192


def test_length_and_dtype(run, written):
    ran = run("inspect", written(LLAMA), "--length", 1_000_000, "--dtype", "float16")
    said = dict(rows_of(ran.out))
    assert said["length"].endswith("looked at up to 1,000,000")
    assert said["cast positions"].startswith("in float16: 2,048 and 2,049 are one")


@pytest.mark.parametrize(("length", "last"), [(259, ""), (258, "; so are the last 2")])
def test_a_last_position_that_shares_with_none_is_not_said_to(run, written, length, last):
    told = run("inspect", written(LLAMA), "--length", length).out
    assert f"in bfloat16: 256 and 257 are one{last}\n" in told


def test_a_model_type_that_is_not_known_is_said_to_be_assumed(run, written):
    said = dict(rows_of(run("inspect", written({**LLAMA, "model_type": "ours"})).out))
    assert said["pairing"].endswith("assumed, since this model type is not known")


def test_a_file_without_lengths_still_has_wavelengths(run, written):
    config = {"model_type": "ours", "rope_theta": 1e4, "hidden_size": 64, "num_attention_heads": 2}
    said = dict(rows_of(run("inspect", written({**config, "num_hidden_layers": 1})).out))
    assert said["length"] == "the file gives none; choose a target with --length"
    assert "turns" not in said
    assert "float32 angles" not in said


def test_the_folder_of_a_file_will_do(run, written):
    assert "llama, 32 layers" in run("inspect", written(LLAMA).parent).out


@pytest.mark.parametrize("config", [LLAMA, GEMMA, SMOLLM, DEEPSEEK])
def test_lines_fit_80_columns(run, written, config, monkeypatch):
    monkeypatch.chdir(written(config).parent)
    for words in (["config.json"], ["config.json", "--length", 123_456_789]):
        lines = run("inspect", *words).out.splitlines()
        assert max(map(len, lines)) < 80


@pytest.mark.parametrize("count", [1, 2])
def test_no_number_is_broken_in_two(run, written, count):
    sections = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
    text = {"model_type": "qwen2_vl_text", "hidden_size": 1536, "num_attention_heads": 12,
            "num_hidden_layers": 2, "rope_parameters": sections}  # fmt: skip
    file = written({"model_type": "qwen2_vl", "text_config": text})
    out = run("inspect", *[file, written(LLAMA, "llama.json")][:count]).out
    said = dict(reversed(rows_of(out)))["expression"]
    # No part of this is as long as a line.
    assert "Geometric(dim=128, base=1000000.0)" in said.replace("( ", "(")
    assert max(map(len, out.splitlines()[2:])) < 80


def test_two_files_and_only_what_differs(run, written):
    longer = {**LLAMA, "rope_theta": 1e6}
    ran = run("inspect", written(LLAMA, "a.json"), written(longer, "b.json"))
    assert ran.out.startswith("A  ")
    said = dict(rows_of(ran.out))
    assert said["frequencies"] == "A  base 500,000, llama3 × 8 B  base 1,000,000, llama3 × 8"
    assert not {"pairing", "rotated", "length", "softmax scale", "cast positions"} & set(said)


def test_what_has_no_row_of_its_own_is_told_by_expressions(run, written):
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
    small = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
             "num_hidden_layers": 4, "max_position_embeddings": 16384}  # fmt: skip
    files = [
        written({**small, "rope_scaling": {**yarn, "beta_fast": fast}}, f"{fast}.json")
        for fast in (32, 16)
    ]
    said = dict(rows_of(run("inspect", *files).out))
    assert "beta_fast=32" in said["expression"]
    assert "beta_fast=16" in said["expression"]


def test_two_files_that_agree(run, written):
    other = {**LLAMA, "rope_scaling": None, "rope_parameters": {
        **LLAMA["rope_scaling"], "rope_theta": 500000.0}}  # fmt: skip
    del other["rope_theta"]
    ran = run("inspect", written(LLAMA, "a.json"), written(other, "b.json"))
    assert ran.out.endswith("What is done with positions is the same in layers 0-31.\n")


def test_layers_that_words_alone_tell_are_not_called_the_same(run, written):
    """Kernels of 128 and of 64 frames were said to do the same."""
    other = {"num_conv_pos_embeddings": 64, "num_conv_pos_embedding_groups": 8}
    paths = [
        written({"model_type": "wav2vec2", **more}, f"{name}.json")
        for name, more in (("a", {}), ("b", other))
    ]
    said = " ".join(run("inspect", *paths).out.split())
    assert "What is told of positions is the same in layers 0-11" in said
    assert "Some of it is words, which may leave out where the models differ." in said


BARK = {"model_type": "bark", "semantic_config": {"num_layers": 12}}
OWN_EYES = {"model_type": "llava", "text_config": {"model_type": "llama", "num_hidden_layers": 2},
            "vision_config": {"model_type": "my_own_vit", "num_hidden_layers": 24}}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "changed", "where"),
    [
        (BARK, {"semantic_config": {"num_layers": 24}}, ""),
        (BARK, {"fine_acoustics_config": {"num_layers": 12}}, None),
        (OWN_EYES, {"vision_config": {"model_type": "my_own_vit", "num_hidden_layers": 12}},
         " in all parts and layers"),
    ],
)  # fmt: skip
def test_parts_whose_layers_were_not_read_are_not_called_the_same(
    run, written, config, changed, where
):
    paths = [written(config, "a.json"), written({**config, **changed}, "b.json")]
    said = " ".join(run("inspect", *paths).out.split())
    assert "What is done with positions is the same" not in said
    told = f"What is told of positions is the same{where}. Some of it is words"
    assert (told in said) == (where is not None)


@pytest.mark.parametrize("config", [BARK, OWN_EYES])
def test_layers_that_were_not_read_are_not_counted(run, written, config):
    out = run("inspect", written(config)).out
    assert "0 layers" not in out
    assert "bark\n" in out or "\nvision (my_own_vit)\n" in out


def test_one_layer_is_one(run, written):
    assert "llama, 1 layer\n" in run("inspect", written({**LLAMA, "num_hidden_layers": 1})).out


def test_what_words_alone_tell_is_not_compared_as_if_it_were_nothing(run, written):
    """NanoChat rotates, in the other direction, which no encoding here does."""
    paths = [written({"model_type": name}, f"{name}.json") for name in ("llama", "nanochat")]
    said = " ".join(run("inspect", *paths).out.split())
    assert "B in words only" in said
    assert "no rotary encoding" not in said
    assert "Positional()" not in said
    told = json.loads(run("inspect", paths[1], "--format", "json").out)
    assert told["parts"][0]["layers"][0]["expression"] is None


def test_the_scale_of_scores_is_compared_where_one_side_rotates(run, written):
    """Equal scales were told of one side alone, as if the other had none."""
    llama = written({**LLAMA, "num_hidden_layers": 1}, "a.json")
    for heads, differs in ((32, False), (16, True)):
        mpt = {"model_type": "mpt", "d_model": 4096, "n_heads": heads, "n_layers": 1}
        rows = rows_of(run("inspect", llama, written(mpt, "b.json")).out)
        assert any(label == "softmax scale" for label, _ in rows) == differs


def test_types_of_layers_that_alone_differ_are_told(run, written):
    few = {**LLAMA, "num_hidden_layers": 2}
    typed = {**few, "layer_types": ["full_attention"] * 2}
    out = run("inspect", written(few, "a.json"), written(typed, "b.json")).out
    assert ["type", "A  none given B  full_attention"] in rows_of(out)


def test_a_scale_that_nothing_says_is_not_made_up(run, written):
    path = written({"model_type": "deepseek_v32", "num_hidden_layers": 1})
    told = json.loads(run("inspect", path, "--format", "json").out)
    layers = [layer for part in told["parts"] for layer in part["layers"] if layer["rotary"]]
    assert layers
    assert all(each["rotary"]["softmax_scale"] == each["softmax_scale"] for each in layers)


def test_two_files_of_other_depth_and_other_layers(run, written):
    plain = {**SMOLLM, "model_type": "llama", "num_hidden_layers": 10}
    ran = run("inspect", written(SMOLLM, "a.json"), written(plain, "b.json"))
    assert "layers 3, 7\n  A  no rotary encoding\n  B  base 5,000,000\n" in ran.out
    assert "layers 8, 9\n  only in B\n" in ran.out
    assert "the same" not in ran.out


def test_json_of_two_files_is_a_list(run, written):
    ran = run("inspect", written(LLAMA, "a.json"), written(GEMMA, "b.json"), "--format", "json")
    assert [model["model_type"] for model in json.loads(ran.out)] == ["llama", "gemma3"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "holds a list"),
        ({"model_type": "ours"}, "What ours does with positions is not known here"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "facto": 2}}, "unknown key 'facto'"),
        ({**LLAMA, "num_hidden_layers": None}, "num_hidden_layers"),
    ],
)
def test_what_cannot_be_inspected_is_one_line_with_the_file(refused, written, config, said):
    complaint = refused("inspect", written(config))
    assert said in complaint
    assert "config.json" in complaint


def test_no_file_no_argument_and_no_length(refused, written):
    assert "No such file" in refused("inspect", "nowhere/config.json")
    assert "CONFIG.json" in refused("inspect")
    assert "--length is 0" in refused("inspect", written(LLAMA), "--length", 0)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "gpt2"}, "Positional(tokens=Learned(768, max_len=1024))"),
        ({"model_type": "bloom"}, "Positional(scores=ALiBi(heads=8))"),
        ({"model_type": "t5"}, "bidirectional=False"),
        ({"model_type": "deberta-v2", "relative_attention": True,
          "pos_att_type": ["p2c", "c2p"]}, "DeBERTa"),
        ({"model_type": "swin"}, "SwinBias(heads=24"),
        ({"model_type": "vit"}, "LearnedGrid(768, size=(14, 14), prefix=1)"),
        ({"model_type": "whisper"}, "Sinusoidal(384"),
        ({"model_type": "wav2vec2"}, "grouped convolution"),
        ({"model_type": "sam_vision_model"}, "decomposed relative positions"),
        ({"model_type": "mamba"}, "no encoding of positions"),
        ({"model_type": "llama4_text"}, "QueryTemperature"),
        ({"_class_name": "WanTransformer3DModel"}, "form='wan'"),
        ({"model_type": "nanochat"}, "rotates in the other direction"),
    ],
)  # fmt: skip
def test_any_scheme_is_explained(run, written, config, said):
    ran = run("inspect", written(config))
    assert ran.status == 0
    assert said in " ".join(ran.out.split())
    assert max(map(len, ran.out.splitlines()[1:])) < 80


def test_every_part_of_a_composite_is_explained_and_compared(run, written):
    text = {"text_config": {"model_type": "qwen2_vl_text", "num_hidden_layers": 2}}
    one = {"model_type": "qwen2_vl", **text}
    other = {**one, "vision_config": {"num_heads": 8}}
    ran = run("inspect", written(one, "a.json"))
    assert "text (qwen2_vl_text), 2 layers" in ran.out
    assert "vision (qwen2_vl_vision), 32 layers" in ran.out
    both = run("inspect", written(one, "a.json"), written(other, "b.json")).out
    assert "vision, layers 0-31\n" in both
    assert "AxialRotary(160" in both
    assert "text, layers" not in both


def test_windows_are_told(run, written):
    rows = rows_of(run("inspect", written(GEMMA)).out)
    assert [text for label, text in rows if label == "window"] == ["the last 4,096 keys"]


@pytest.mark.parametrize("config", [LLAMA, {"model_type": "bloom"}, {"model_type": "t5"}])
def test_a_figure_of_wavelengths_or_of_a_bias(run, written, tmp_path, config):
    figure = tmp_path / "figure.svg"
    ran = run("inspect", written(config), "--figure", figure)
    assert ran.status == 0
    assert "<svg" in figure.read_text()


def test_a_document_stands_alone_beside_a_figure(run, written, tmp_path):
    picture = tmp_path / "figure.svg"
    ran = run("inspect", written(LLAMA), "--format", "json", "--figure", picture)
    assert json.loads(ran.out)["parts"]
    assert ran.err == f"wrote {picture}\n"


def test_a_figure_of_numbers_drawn_at_random_is_the_same_again(run, written, monkeypatch):
    """Its title says that they are seeded."""
    import torch

    from posenc.cli.render import figures

    drawn = []
    monkeypatch.setattr(figures, "write", lambda axes, *_: drawn.append(axes))
    path = written({"model_type": "t5"})
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        assert run("inspect", path, "--figure", "figure.png").status == 0
        assert torch.equal(torch.get_rng_state(), before)
    assert "seeded random numbers" in drawn[0].get_title()
    one, again = ([list(map(float, line.get_ydata())) for line in axes.lines] for axes in drawn)
    assert one == again
    assert any(len(set(curve)) > 2 for curve in one)


def lines_of(monkeypatch, run, *words) -> list[str]:
    """What the key of the figure names, and the title."""
    from posenc.cli.render import figures

    drawn = []
    monkeypatch.setattr(figures, "write", lambda axes, *_: drawn.append(axes))
    assert run("inspect", *words, "--figure", "figure.png").status == 0
    legend = drawn[0].get_legend()
    found = [text.get_text() for text in legend.texts] if legend else []
    return [*found, drawn[0].get_title()]


def test_a_file_that_leaves_defaults_out_is_read_once_transformers_has_written_it(
    run, refused, written, tmp_path
):
    left_out = {"model_type": "gpt_oss", "num_hidden_layers": 2}
    assert "the file that its save_pretrained writes" in refused("inspect", written(left_out))
    GptOssConfig(num_hidden_layers=2).save_pretrained(tmp_path / "whole")
    assert "yarn" in run("inspect", tmp_path / "whole").out


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["one/config.json", "two/config.json"], ["A one: ", "B two: "]),
        (["one/old.json", "one/new.json"], ["A old.json: ", "B new.json: "]),
        (["x/one/config.json", "y/one/config.json"], ["A x/one/config.json: ", "B y/one/"]),
        (["x/one", "x/two"], ["A one: ", "B two: "]),
    ],
)
def test_a_figure_of_two_files_names_what_tells_them_apart(
    run, monkeypatch, tmp_path, files, names
):
    monkeypatch.chdir(tmp_path)
    for file, base in zip(files, (1e4, 5e5), strict=True):
        path = Path(file) if file.endswith("json") else Path(file, "config.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**LLAMA, "rope_theta": base}))
    told = lines_of(monkeypatch, run, *files)
    assert all(text.startswith(name) for text, name in zip(told[:2], names, strict=True))


def test_a_figure_of_frequencies_that_a_length_decides(run, written, tmp_path):
    """Their factor is a ratio, which the expression in the figure's hands could not say."""
    scaling = {"type": "dynamic", "factor": 4.0}
    path, figure = written({**LLAMA, "rope_scaling": scaling}), tmp_path / "f.png"
    ran = run("inspect", path, "--length", "200000", "--figure", figure)
    assert (ran.status, figure.exists()) == (0, True)
    assert "factor=Fraction(" in " ".join(ran.out.split())


def test_a_figure_has_the_layers_that_rotate_behind_one_that_does_not(
    run, written, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    first = {**SMOLLM, "num_hidden_layers": 2, "no_rope_layers": [0, 1]}
    said = lines_of(monkeypatch, run, written(first), written(LLAMA, "b.json"))
    assert [each.partition(": ")[2] for each in said[:2]] == [
        "text, layer 1 (trained to 65,536)",
        "text (trained to 8,192, looked at up to 131,072)",
    ]
    # Two files of one folder are two.
    said = lines_of(monkeypatch, run, written(LLAMA, "a.json"), written(LLAMA, "b.json"))
    assert [each.split()[0] for each in said[:2]] == ["A", "B"]
    assert said[0].endswith(": text")
    assert lines_of(monkeypatch, run, written({"model_type": "t5"}))[-1].startswith("encoder")


def test_a_figure_of_neither_is_refused(run, written, tmp_path):
    ran = run("inspect", written({"model_type": "gpt2"}), "--figure", tmp_path / "figure.png")
    assert ran.status == 2
    assert "neither wavelengths nor a bias" in ran.err


def saved(folder, **tensors):
    from safetensors.torch import save_file

    save_file(tensors, folder / "model.safetensors")


def test_weights_beside_the_file_confirm_it(run, written, tmp_path):
    import torch

    path = written({"model_type": "gpt2"})
    saved(tmp_path, **{"wpe.weight": torch.zeros(1024, 768)})
    assert "wpe.weight has 1024 rows of 768, as the file says" in run("inspect", path).out
    saved(tmp_path, **{"wpe.weight": torch.zeros(512, 768)})
    assert "the file says [1024, 768]" in " ".join(run("inspect", path).out.split())


VIT = {"model_type": "vit", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
       "image_size": 32, "patch_size": 8}  # fmt: skip
SWIN = {"model_type": "swin", "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 4],
        "window_size": 3, "image_size": 24, "patch_size": 4}  # fmt: skip
DEBERTA = {"model_type": "deberta-v2", "hidden_size": 8, "num_attention_heads": 2,
           "num_hidden_layers": 1, "relative_attention": True, "position_buckets": 4,
           "max_position_embeddings": 16, "pos_att_type": ["p2c", "c2p"],
           "position_biased_input": False}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "shapes", "said"),
    [
        (VIT, {"embeddings.position_embeddings": [1, 17, 8]},
         "embeddings.position_embeddings has 17 rows of 8, as the file says."),
        ({**VIT, "model_type": "siglip_vision_model"},
         {"embeddings.position_embedding.weight": [16, 8]}, "16 rows of 8, as the file says."),
        (VIT, {"decoder.decoder_pos_embed": [1, 17, 4], "position_embeddings": [1, 26, 8]},
         "Weights: position_embeddings has shape [1, 26, 8]; the file says [17, 8]."),
        (SWIN, {f"encoder.layers.{n}.blocks.0.relative_position_bias_table": [25, 2 + 2 * n]
                for n in (0, 1)},
         "layers.1.blocks.0.relative_position_bias_table has 25 displacements of 4 heads, as the"),
        (SWIN, {f"encoder.layers.{n}.blocks.0.relative_position_bias_table": [25, 2]
                for n in (0, 1)},
         "layers.1.blocks.0.relative_position_bias_table has shape [25, 2]; the file says [25, 4]"),
        (DEBERTA, {"encoder.rel_embeddings.weight": [8, 8]}, "has 8 rows of 8, as the file says."),
        (DEBERTA, {"encoder.rel_embeddings.weight": [32, 8]}, "the file says [8, 8]."),
        ({"model_type": "t5"}, {"decoder.relative_attention_bias.weight": [32, 6]},
         "has shape [32, 6]; the file says [32, 8]."),
    ],
)  # fmt: skip
def test_tables_of_every_kind_are_held_against_the_file(
    run, written, tmp_path, config, shapes, said
):
    import torch

    path = written(config)
    saved(tmp_path, **{name: torch.zeros(shape) for name, shape in shapes.items()})
    out = run("inspect", path).out
    assert max(map(len, out.splitlines()[1:])) < 80
    assert said.replace(" ", "") in "".join(out.split())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_stored_sines_are_held_against_those_that_were_read(run, written, tmp_path, dtype):
    import torch

    path = written({"model_type": "pegasus", "d_model": 8, "encoder_layers": 1,
                    "decoder_layers": 1})  # fmt: skip
    angles = torch.arange(20.0)[:, None] * 10_000.0 ** -(torch.arange(4) / 4)
    sines = torch.cat((angles.sin(), angles.cos()), -1)
    for table, told in [
        (sines, "holds the sines and cosines that were read."),
        (sines.flip(-1), "holds other numbers than the sines and cosines that were read."),
        (0 * sines, "holds other numbers than the sines and cosines that were read."),
        (sines[:, 1:], "has shape [20, 7]; the file says rows of 8."),
    ]:
        table = table.to(getattr(torch, dtype)).contiguous()
        saved(tmp_path, **{"encoder.embed_positions.weight": table})
        said = " ".join(run("inspect", path).out.split())
        assert f"Weights: encoder.embed_positions.weight {told}" in said


def test_names_that_tell_of_positions_are_told_where_nothing_was_held(run, written, tmp_path):
    import torch

    path = written({"model_type": "wavlm", "num_hidden_layers": 2})
    names = [f"layers.{n}.{name}" for n in (0, 1) for name in ("rel_attn_embed.weight", "norm")]
    saved(tmp_path, **{name: torch.zeros(4, 2) for name in names})
    said = " ".join(run("inspect", path).out.split())
    assert "nothing in them was held against what was read" in said
    assert said.endswith("These names tell of positions: layers.*.rel_attn_embed.weight [4, 2].")
    saved(tmp_path, **{f"{n}.post_attention_norm.weight": torch.zeros(4) for n in (0, 1)})
    assert "none of their names is known here" in run("inspect", path).out


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_stored_cosines_tell_their_pairing(run, written, tmp_path, pairing):
    import torch

    angles = torch.arange(8)[:, None] * torch.rand(64)
    cos = torch.cat((angles, angles), -1).cos()
    if pairing == "interleaved":
        cos = angles.cos().repeat_interleave(2, -1)
    path = written({**LLAMA, "num_hidden_layers": 1})
    saved(tmp_path, **{"rotary.cos_cached": cos.contiguous(), "rotary.inv_freq": torch.rand(64),
                       "self_attn.q_proj.weight": torch.zeros(4096, 8)})  # fmt: skip
    told = " ".join(run("inspect", path).out.split())
    assert f"repeats its columns as of {pairing} pairing" in told
    assert ("(as read)" in told) == (pairing == "half")
    assert "holds 64 frequencies, as read" in told
    assert "4096 wide: 32 × 128" in told


def test_weights_of_another_part_or_layer_confirm_nothing(run, written, tmp_path):
    import torch

    text = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
            "num_hidden_layers": 2}  # fmt: skip
    vision = {"model_type": "pixtral", "hidden_size": 48, "num_attention_heads": 2,
              "num_hidden_layers": 2}  # fmt: skip
    path = written({"model_type": "llava", "text_config": text, "vision_config": vision})
    tensors = {"vision_tower.layers.0.q_proj.weight": torch.zeros(48, 48)}
    saved(tmp_path, **tensors)
    assert "48 wide: 3" not in run("inspect", path).out
    saved(tmp_path, **tensors, **{"language_model.layers.0.q_proj.weight": torch.zeros(72, 64)})
    told = " ".join(run("inspect", path).out.split())
    assert "language_model.layers.0.q_proj.weight is 72 wide, no multiple of the head" in told
    path = written({**SMOLLM, "num_hidden_layers": 2, "no_rope_layers": [0, 1]})
    widths = {f"layers.{n}.q_proj.weight": torch.zeros(100 + 28 * n, 8) for n in (0, 1)}
    saved(tmp_path, **widths)
    assert "layers.1.q_proj.weight is 128 wide: 1 × 128" in run("inspect", path).out


def test_packed_weights_tell_no_width(run, written, tmp_path):
    """Their shape was taken for that of the model's weights."""
    import torch

    path = written({**LLAMA, "num_hidden_layers": 1})
    saved(tmp_path, **{"self_attn.q_proj.weight": torch.zeros(32768, 1, dtype=torch.uint8)})
    told = " ".join(run("inspect", path).out.split())
    assert "q_proj.weight is packed in U8, so that its shape tells no width" in told


def test_what_is_no_weights_file_is_refused(run, written, tmp_path):
    path = written(LLAMA)
    (tmp_path / "model.safetensors").write_bytes(b"nothing of the kind")
    assert "is no safetensors file" in run("inspect", path).err
