"""Token ids looked up, scaled and added to: ``dropout(weight[ids] · scale + table)``.

``reference.py`` is the meaning and ``operator.py`` chooses. There is no plan and no kernel of its
own: those of ``addition`` read content row by row where they are given ids.
"""
