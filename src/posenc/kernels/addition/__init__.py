"""A table added to content: ``dropout(x · scale + table)``.

``reference.py`` is the meaning, ``strides.py`` plans how memory is walked, ``cpu.py``
(``addition.c``, a tile by ``sums.h``) and ``triton.py`` run the plan, ``operator.py`` chooses.
"""
