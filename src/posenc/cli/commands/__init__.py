"""What each command takes: dataclasses of its options. They answer without torch."""
