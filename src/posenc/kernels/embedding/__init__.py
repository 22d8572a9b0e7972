"""Token ids looked up, scaled and added to: ``dropout(weight[ids] · scale + table)``.

``front.py`` is all there is: kernels and formula are those of ``addition``.
"""
