"""Two implementations side by side: how each is run, where their bits part, what that does."""
