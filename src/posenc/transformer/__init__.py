"""A transformer encoder that is told in all three places where its tokens stand."""

from posenc.transformer.attention import AttentionStages, MultiHeadAttention
from posenc.transformer.bert_embeddings import BertEmbeddings
from posenc.transformer.block import Block, BlockStages
from posenc.transformer.cache import KeyValueCache, LayerCache
from posenc.transformer.embedding import TokenEmbedding
from posenc.transformer.encoder import Encoder, EncoderStages
from posenc.transformer.feed_forward import FeedForward, FeedForwardStages
from posenc.transformer.normalization import BatchNorm, LayerNorm, NormStages
from posenc.transformer.tables import AttentionTables, Tables

__all__ = [
    "AttentionStages",
    "AttentionTables",
    "BatchNorm",
    "BertEmbeddings",
    "Block",
    "BlockStages",
    "Encoder",
    "EncoderStages",
    "FeedForward",
    "FeedForwardStages",
    "KeyValueCache",
    "LayerCache",
    "LayerNorm",
    "MultiHeadAttention",
    "NormStages",
    "Tables",
    "TokenEmbedding",
]
