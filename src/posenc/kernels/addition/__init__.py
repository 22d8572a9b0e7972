"""A table added to content: ``dropout(x · scale + table)``.

``reference.py`` is the formula, ``front.py`` chooses between the operator and the formula,
``triton.py`` serves accelerators. In C: ``addition_operators.c`` checks and plans, ``addition.c``
walks, ``sums.h`` sums a tile.
"""
