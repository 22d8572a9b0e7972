"""Everything that needs a card, in one command; see ``__main__``."""
