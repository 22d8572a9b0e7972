"""The encodings themselves, by the place where they act."""
