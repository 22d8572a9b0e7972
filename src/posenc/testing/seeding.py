"""Seeding of torch's random numbers, fast."""

import torch


def seed(number: int = 0) -> None:
    """``torch.manual_seed(number)``, which is slow for kinds of devices that are not there."""
    everywhere = torch.accelerator.is_available()
    (torch.manual_seed if everywhere else torch.default_generator.manual_seed)(number)
