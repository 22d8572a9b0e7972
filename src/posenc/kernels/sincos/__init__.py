"""Tables of cosines and sines, correctly rounded.

The formula is ``posenc.numerics.sincos``, which is no kernel's alone; so there is no
``reference.py``. ``front.py`` chooses, ``triton.py`` serves accelerators, and ``triton_phase.py``
has what ``phase.h`` has in C.
"""
