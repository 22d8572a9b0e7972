"""Every kind of model that ``patch`` serves, tiny and random, through the same checks."""
