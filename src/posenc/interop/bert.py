"""From models of ``transformers`` to the same models here."""

from typing import Any

from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from posenc.encodings.positional import Positional
from posenc.encodings.tokens import Learned
from posenc.interop.torch import Taken, take_over
from posenc.transformer import Encoder, TokenEmbedding


class Bert(nn.Module):
    """Token ids to hidden states, as BERT: words + token types, then an encoder.

    The encoding of positions is that of ``encoder.positional``, and can be another one. Token types
    are 0 in the first sentence and 1 in the second.

    Reference:
        Devlin et al. 2019, "BERT", figure 2 (arXiv:1810.04805).

    Example:
        >>> import torch
        >>> encoder = Encoder(16, heads=4, depth=2, positional=Positional(Learned(16, 64)))
        >>> bert = Bert(TokenEmbedding(100, 16), TokenEmbedding(2, 16), encoder)
        >>> bert(torch.tensor([[5, 7, 9]])).shape
        torch.Size([1, 3, 16])
    """

    def __init__(self, words: TokenEmbedding, token_types: TokenEmbedding, encoder: Encoder):
        super().__init__()
        self.words, self.token_types, self.encoder = words, token_types, encoder

    def forward(
        self,
        ids: Int64[Tensor, "batch seq"],
        positions: Int64[Tensor, "..."] | None = None,
        *,
        padding_mask: Bool[Tensor, "batch seq"] | None = None,
        token_types: Int64[Tensor, "batch seq"] | None = None,
    ) -> Float[Tensor, "batch seq dim"]:
        """The last hidden states; ``padding_mask`` is True where a token is real.

        Without positions, real tokens count from 0: behind left padding too, where ``transformers``
        counts the padding. Without token types, all tokens are of the first sentence.
        """
        types = ids.new_zeros(ids.shape) if token_types is None else token_types
        x = self.words(ids) + self.token_types(types)
        return self.encoder(x, positions, padding_mask=padding_mask)


def bert_from_transformers(model: nn.Module) -> Bert:
    """A ``Bert`` with the weights of a ``transformers.BertModel`` (or of a model that wraps one).

    The hidden states are those of the model in evaluation mode; in training there is dropout in one
    more place here (inside the feed-forward layers). A pooler or a head and hooks stay behind. Each
    weight is a copy that learns if the model's does, in its dtype.

    Example:
        >>> from transformers import BertConfig, BertModel
        >>> config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1,
        ...                     num_attention_heads=4, intermediate_size=32)
        >>> bert_from_transformers(BertModel(config)).encoder.depth
        1
    """
    source: Any = getattr(model, "bert", model)
    if type(source).__name__ != "BertModel":
        raise TypeError(f"model is a {type(source).__name__}, not a transformers.BertModel.")
    config = source.config
    is_causal = getattr(config, "is_causal", False)  # transformers heeds it without a mask
    if config.is_decoder or config.add_cross_attention or is_causal:
        raise ValueError("Only a BERT that encodes, looking to both sides, is taken over.")
    dim, weights = config.hidden_size, dict(source.named_parameters(remove_duplicate=False))
    encoder = Encoder(
        dim,
        config.num_attention_heads,
        config.num_hidden_layers,
        positional=Positional(Learned(dim, config.max_position_embeddings)),
        inner=config.intermediate_size,
        norm="post",
        activation=source.encoder.layer[0].intermediate.intermediate_act_fn,
        dropout=config.hidden_dropout_prob,
        attention_dropout=config.attention_probs_dropout_prob,
        embedding_norm=True,
        eps=config.layer_norm_eps,
    )
    bert = Bert(
        TokenEmbedding(config.vocab_size, dim, padding_idx=config.pad_token_id),
        TokenEmbedding(config.type_vocab_size, dim),
        encoder,
    ).to(weights["embeddings.word_embeddings.weight"])
    take_over(bert, {ours: Taken(weights[theirs]) for ours, theirs in _names(bert).items()})
    return bert.train(source.training)


EMBEDDINGS = {
    "words.weight": "embeddings.word_embeddings.weight",
    "token_types.weight": "embeddings.token_type_embeddings.weight",
    "encoder.positional.tokens.0.weight": "embeddings.position_embeddings.weight",
    "encoder.embedding_norm.weight": "embeddings.LayerNorm.weight",
    "encoder.embedding_norm.bias": "embeddings.LayerNorm.bias",
}

BLOCK = {
    "attention.queries": "attention.self.query",
    "attention.keys": "attention.self.key",
    "attention.values": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}


def _names(bert: Bert) -> dict[str, str]:
    """The names of all weights, here and in ``transformers``."""
    blocks = {
        f"encoder.blocks.{i}.{ours}.{kind}": f"encoder.layer.{i}.{theirs}.{kind}"
        for i in range(bert.encoder.depth)
        for ours, theirs in BLOCK.items()
        for kind in ("weight", "bias")
    }
    return EMBEDDINGS | blocks
