"""Questions to what gives a bias for scores."""
