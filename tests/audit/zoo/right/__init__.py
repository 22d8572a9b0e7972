"""Modules of the public styles, with no slip."""

from tests.audit.zoo.right import added, bias, grids, rotary

RIGHT = [*added.RIGHT, *rotary.RIGHT, *bias.RIGHT, *grids.RIGHT]
