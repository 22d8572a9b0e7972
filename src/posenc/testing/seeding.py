"""Random numbers from their beginning, thousands of times in a run."""

import torch


def seed(number: int = 0) -> None:
    """Begin torch's random numbers anew, as ``torch.manual_seed(number)`` does.

    That writes down the whole stack for each kind of device that is not there, every time: where no
    accelerator is, half of the battery's seconds went there.

    Example:
        >>> seed(3)
        >>> a = torch.rand(2)
        >>> _ = torch.manual_seed(3)
        >>> bool((torch.rand(2) == a).all())
        True
    """
    everywhere = torch.accelerator.is_available()
    (torch.manual_seed if everywhere else torch.default_generator.manual_seed)(number)
