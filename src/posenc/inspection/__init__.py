"""Numbers about encodings, not pictures of them."""
