"""Text in, vectors out, with bounded memory."""
