"""Pack documents of different lengths into rows, and see that each is read as if it stood alone.

python examples/packed_documents.py
"""

import argparse
import string

import torch

from posenc import ALiBi, Positional, Rotary
from posenc.positions import collate
from posenc.transformer import Encoder, TokenEmbedding


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=512, help="of a row")
    parser.add_argument("--documents", type=int, default=12)
    options = parser.parse_args()
    torch.manual_seed(0)

    text = (string.ascii_lowercase * options.length).encode()
    lengths = torch.randint(8, options.length // 2, (options.documents,)).tolist()
    documents = [torch.tensor(list(text[:length])) for length in lengths]
    packed = collate(documents, length=options.length)
    rows, tokens = len(packed.input_ids), int(packed.padding_mask.sum())
    print(
        f"{len(documents)} documents in {rows} rows, {tokens / packed.input_ids.numel():.0%} full"
    )

    embedding = TokenEmbedding(256, 64)
    positional = Positional(queries_keys=Rotary(16), scores=ALiBi(4))
    encoder = Encoder(64, 4, depth=2, positional=positional, is_causal=True, norm="pre").eval()
    together = encoder(
        embedding(packed.input_ids),
        document_ids=packed.document_ids,
        padding_mask=packed.padding_mask,
    )

    apart, found = 0.0, 0
    for row in range(rows):
        for each in packed.document_ids[row][packed.padding_mask[row]].unique():
            its = (packed.document_ids[row] == each) & packed.padding_mask[row]
            alone = encoder(embedding(packed.input_ids[row][its][None]))[0]
            apart = max(apart, float((together[row][its] - alone).abs().max()))
            found += 1
    print(f"{found} documents, packed and alone: at most {apart:.1e} apart")


if __name__ == "__main__":
    main()
