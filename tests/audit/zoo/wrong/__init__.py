"""Modules with one slip each."""

from tests.audit.zoo.wrong import added, bias, grids, places, rotary

WRONG = [*added.WRONG, *rotary.WRONG, *bias.WRONG, *grids.WRONG, *places.WRONG]
