"""What commands read and write: text, tokens, embeddings, files that are whole or not there."""
