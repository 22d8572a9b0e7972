"""Questions to what adds to embeddings."""
