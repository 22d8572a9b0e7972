"""Position ids of multimodal models, held against those that the models themselves count."""

import inspect
from functools import partial
from importlib import import_module

import numpy as np
import pytest
import torch
from transformers import CONFIG_MAPPING

from posenc.interop.huggingface import multimodal_positions
from posenc.interop.position_ids import FAMILIES

IMAGE, VIDEO = 1, 2
BY_TYPES = sorted(name for name, way in FAMILIES.items() if way != "hears")


class Drawn:
    """Random rows: types, and the grids of their images and videos in patches."""

    def __init__(self, family: str, rows: int, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        self.family, self.images, self.videos = family, [], []
        self.rows = [self._row() for _ in range(rows)]

    def number(self, low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=self.generator))

    def _row(self) -> torch.Tensor:
        parts = [torch.zeros(self.number(1, 5), dtype=torch.long)]
        for _ in range(self.number(0, 4)):
            h, w = self.number(1, 4), self.number(1, 4)
            if self.number(0, 2):
                self.images.append((1, 2 * h, 2 * w))
                parts.append(torch.full((h * w,), IMAGE))
            else:
                parts += self._video(self.number(1, 7), h, w)
            parts.append(torch.zeros(self.number(1, 4), dtype=torch.long))
        return torch.cat(parts)

    def _video(self, frames: int, h: int, w: int) -> list[torch.Tensor]:
        merged = 2 if FAMILIES[self.family] == "frames merged" else 1
        self.videos.append((frames * merged, 2 * h, 2 * w))
        if FAMILIES[self.family] != "frames apart":
            return [torch.full((frames * h * w,), VIDEO)]
        frame = torch.full((h * w,), VIDEO)
        stamp = torch.zeros(2, dtype=torch.long)
        return [piece for _ in range(frames) for piece in (stamp, frame)]

    def padded(self, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(map(len, self.rows))
        types = torch.zeros(len(self.rows), longest, dtype=torch.long)
        mask = torch.zeros_like(types)
        for index, row in enumerate(self.rows):
            place = slice(longest - len(row), None) if left else slice(len(row))
            types[index, place], mask[index, place] = row, 1
        return types, mask

    def grids(self) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        return tuple(torch.tensor(g) if g else None for g in (self.images, self.videos))  # type: ignore[return-value]


def bare(model_type: str):
    """A model with its configuration and nothing else: counting needs no weights."""
    config = CONFIG_MAPPING[model_type]()
    code = import_module(type(config).__module__.replace("configuration_", "modeling_"))
    kinds = [
        kind
        for _, kind in inspect.getmembers(code, inspect.isclass)
        if "get_rope_index" in vars(kind) and "get_vision_position_ids" in dir(kind)
    ]
    model = object.__new__(kinds[0])
    model.config = config
    return model


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("family", BY_TYPES)
def test_they_are_those_of_the_model(family, left):
    model = bare(family)
    for seed in range(3):
        drawn = Drawn(family, rows=3, seed=seed)
        types, mask = drawn.padded(left)
        images, videos = drawn.grids()
        given = {"image_grid_thw": images, "video_grid_thw": videos, "attention_mask": mask}
        ours_given = {}
        if FAMILIES[family] == "seconds" and videos is not None:
            seconds = torch.rand(len(videos), generator=drawn.generator) * 3
            given["second_per_grid_ts"] = ours_given["seconds"] = seconds
        wanted, _ = model.get_rope_index(types, types, **given)
        ours = multimodal_positions(
            model.config, types, image_grids=images, video_grids=videos, mask=mask, **ours_given
        )
        assert torch.equal(ours.movedim(-1, 0), wanted)


def omni(model_type: str):
    """The thinker of an Omni model, bare."""
    whole = CONFIG_MAPPING[model_type]()
    code = import_module(type(whole).__module__.replace("configuration_", "modeling_"))
    name = {"qwen2_5_omni": "Qwen2_5Omni", "qwen3_omni_moe": "Qwen3OmniMoe"}[model_type]
    model = object.__new__(getattr(code, f"{name}ThinkerForConditionalGeneration"))
    model.config = whole.thinker_config
    model.config.vision_start_token_id = 50
    model.spatial_merge_size = whole.thinker_config.vision_config.spatial_merge_size
    return model, whole


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - BY_TYPES))
def test_omni_sees_and_reads_as_its_model_does(family):
    """Tokens stand between those that begin and end an image."""
    model, whole = omni(family)
    config = model.config
    seen = lambda token, count: [config.vision_start_token_id, *[token] * count, 7]  # noqa: E731
    rows = [
        [1, 2, *seen(config.image_token_id, 6), 3, 4, 4, 8, 8, 8, 8, 8, 8, 8],
        [1, *seen(config.video_token_id, 12), 5, 6, *seen(config.image_token_id, 1)],
    ]
    longest = max(map(len, rows))
    ids = torch.tensor([[9] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    images, videos = torch.tensor([[1, 4, 6], [1, 2, 2]]), torch.tensor([[3, 4, 4]])
    seconds = torch.tensor([2.0])
    wanted, _ = model.get_rope_index(ids, images, videos, mask, second_per_grids=seconds)
    types = (ids == config.image_token_id) * IMAGE + (ids == config.video_token_id) * VIDEO
    ours = multimodal_positions(
        whole, types, image_grids=images, video_grids=videos, seconds=seconds, mask=mask
    )
    real = mask.bool()
    assert torch.equal(ours.movedim(-1, 0)[:, real], wanted.long()[:, real])


def test_documents_of_a_packed_row_stand_as_they_do_alone():
    file = {"model_type": "qwen2_vl", "vision_config": {"spatial_merge_size": 2}}
    drawn = Drawn("qwen2_vl", rows=3, seed=1)
    types = torch.cat(drawn.rows)[None]
    ids = torch.cat([torch.full((len(row),), n) for n, row in enumerate(drawn.rows)])[None]
    images, videos = drawn.grids()
    together = multimodal_positions(
        file, types, image_grids=images, video_grids=videos, document_ids=ids
    )
    padded, mask = drawn.padded(left=False)
    alone = multimodal_positions(file, padded, image_grids=images, video_grids=videos, mask=mask)
    assert torch.equal(together[0], alone[mask.bool()])


REFUSED = [
    ({"model_type": "llama"}, {}, "llama"),
    ({"model_type": "qwen2_vl"}, {"video_grids": [(2, 3, 2)]}, "merged"),
]


@pytest.mark.parametrize(("config", "given", "noun"), REFUSED)
def test_what_no_model_counts_is_refused(config, given, noun):
    with pytest.raises(ValueError, match=noun):
        multimodal_positions(config, torch.tensor([[0, 2, 2, 0]]), **given)


KINDS = [
    tuple,
    np.array,
    *(partial(torch.tensor, dtype=d) for d in (torch.float32, torch.float64, torch.bfloat16)),
]


@pytest.mark.parametrize("tokens_per_second", [2, 25])
@pytest.mark.parametrize("kind", KINDS)
def test_times_are_rounded_as_the_model_rounds_those_of_their_kind(kind, tokens_per_second):
    seconds = kind([2 / rate for rate in range(1, 40)])
    model = bare("qwen2_5_vl")
    model.config.vision_config.tokens_per_second = tokens_per_second
    types = torch.tensor([[0, *([VIDEO] * 16 + [0]) * 39]])
    grids = torch.tensor([(16, 2, 2)] * 39)
    wanted, _ = model.get_rope_index(types, types, video_grid_thw=grids, second_per_grid_ts=seconds)
    ours = multimodal_positions(model.config, types, video_grids=grids, seconds=seconds)
    assert torch.equal(ours.movedim(-1, 0), wanted)
