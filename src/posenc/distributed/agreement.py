"""One question to all ranks: do you mean the same? What differs is the same error on each."""

from typing import Any

import torch.distributed as dist


def agree(said: Any, group: dist.ProcessGroup, about: str, error: Exception | None = None) -> None:
    """Raise on every rank, with what each of them said, unless all said the same and none failed.

    Collectives of unequal shapes end a process with no Python error, or hang; so ranks ask each
    other before the first of them.

    Args:
        said: What this rank is about to do; compared and printed.
        group: The ranks that are asked.
        about: What the question is, for the message.
        error: What has gone wrong on this rank already, so that the others hear of it.

    Raises:
        ValueError: Two ranks said different things, or one of them failed.
    """
    if group.size() == 1:
        if error is not None:
            raise error
        return
    answers: list[Any] = [None] * group.size()
    failed = None if error is None else f"{type(error).__name__}: {error}"
    dist.all_gather_object(answers, (said, failed), group=group)
    if all(failed is None for _, failed in answers) and all(a == answers[0] for a in answers):
        return
    lines = [
        f"  rank {dist.get_global_rank(group, rank)}: {said if failed is None else failed}"
        for rank, (said, failed) in enumerate(answers)
    ]
    wrong = "failed" if any(failed for _, failed in answers) else "differ"
    raise ValueError(
        f"{about} {wrong} among ranks. Give every rank of the group the same:\n" + "\n".join(lines)
    ) from error
