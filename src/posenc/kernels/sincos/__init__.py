"""Tables of cosines and sines, correctly rounded.

The meaning is ``posenc.numerics.sincos``, which is no kernel's alone; so there is no
``reference.py``. ``strides.py`` plans how memory is walked, ``cpu.py`` (``sincos.c``) and
``triton.py`` run the plan, ``triton_phase.py`` has what ``phase.h`` has in C, ``operator.py``
chooses.
"""
