"""Rotation of queries and keys.

``reference.py`` is the meaning, ``layout.py`` says which channels are pairs, ``strides.py`` plans
how memory is walked, ``cpu.py`` and ``triton.py`` run the plan, ``operator.py`` chooses. In C:
``rotary.c`` walks, ``rotations.h`` rotates one head, ``rotary_tensors.c`` plans by itself for a
step of decoding.
"""
