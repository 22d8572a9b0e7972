"""The same with a slip each."""
