"""Questions to what rotates queries and keys."""
