"""The command line. Apps show what the library computes; they contain no mathematics."""
