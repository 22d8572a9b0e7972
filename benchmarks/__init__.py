"""Side by side with peers: ratios measured in one run, never numbers of another day."""
