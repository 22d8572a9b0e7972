"""How a subject is called: one file a place, found by trying forms and measuring the result."""
