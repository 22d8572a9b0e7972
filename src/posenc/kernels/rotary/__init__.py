"""Rotation of queries and keys.

``reference.py`` is the formula, ``layout.py`` says which channels are pairs, ``front.py`` chooses
between the operator and the formula, ``triton.py`` serves accelerators. In C:
``rotary_operators.c`` checks and plans, ``rotary.c`` walks, ``rotations.h`` rotates one head.
"""
