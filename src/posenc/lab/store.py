"""The folder of results: one JSON file a run is the truth; all else can be made again."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.lab.files import PART, read_json, whole, write_json
from posenc.lab.leases import Lease, claim, is_stale

FOLDERS = ("results", "weights", "checkpoints", "leases", "failures", "logs")

MOST_ATTEMPTS = 3
"""How often a run is begun whose process dies; one that raises an error would raise it again."""


@dataclass(frozen=True)
class Store:
    """Runs by their id.

    Args:
        root: The folder; made where it is not there.

    Example:
        >>> import tempfile
        >>> store = Store(Path(tempfile.mkdtemp()))
        >>> store.keep("abc", {"outcome": {}}), list(store.done())
        (None, ['abc'])
    """

    root: Path

    def __post_init__(self):
        for name in FOLDERS:
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def path(self, folder: str, run: str) -> Path:
        """Where a run's file of one kind stands."""
        endings = {"weights": ".safetensors", "checkpoints": ".pt", "leases": "", "logs": ".log"}
        return self.root / folder / f"{run}{endings.get(folder, '.json')}"

    def result(self, run: str) -> dict[str, Any] | None:
        """What a run gave; None if it is not made yet."""
        return read_json(self.path("results", run))

    def is_done(self, run: str) -> bool:
        """Whether a run is made."""
        return self.path("results", run).is_file()

    def done(self) -> Iterator[str]:
        """The runs that are made."""
        yield from sorted(path.stem for path in (self.root / "results").glob("*.json"))

    def results(self) -> Iterator[dict[str, Any]]:
        """What they gave."""
        for run in self.done():
            if (found := self.result(run)) is not None:
                yield found

    def keep(self, run: str, result: dict[str, Any]) -> None:
        """A finished run; its checkpoint goes once its result is on disk."""
        write_json(self.path("results", run), result)
        self.path("checkpoints", run).unlink(missing_ok=True)
        self.path("failures", run).unlink(missing_ok=True)

    def keep_weights(self, run: str, weights: dict[str, Tensor]) -> None:
        """The tensors of a finished run."""
        from safetensors.torch import save

        # Layers may share what they learn; the format holds each name's own.
        kept = {n: each.clone(memory_format=torch.contiguous_format) for n, each in weights.items()}
        with whole(self.path("weights", run)) as file:
            file.write(save(kept))

    def weights(self, run: str) -> dict[str, Tensor]:
        """The tensors of a run that is made.

        Raises:
            ValueError: They are not there.
        """
        from safetensors.torch import load

        try:
            return load(self.path("weights", run).read_bytes())
        except FileNotFoundError:
            raise ValueError(
                f"run {run} is made, and its weights are gone; remove its result "
                f"{self.path('results', run)}, and it will be made again."
            ) from None

    def claim(self, run: str) -> Lease | None:
        """The right to make a run; None where somebody else is at it."""
        return claim(self.path("leases", run))

    def is_running(self, run: str) -> bool:
        """Whether somebody alive is at it."""
        path = self.path("leases", run)
        return path.exists() and not is_stale(path)

    # Failures.

    def failure(self, run: str) -> dict[str, Any] | None:
        """What went wrong, and how often; None if nothing did."""
        return read_json(self.path("failures", run))

    def note_failure(self, run: str, said: str, *, final: bool) -> None:
        """Writes down an attempt that failed; a final one is not repeated."""
        before = self.failure(run) or {"attempts": 0}
        attempts = before["attempts"] + 1
        write_json(
            self.path("failures", run),
            {"attempts": attempts, "said": said, "final": final or attempts >= MOST_ATTEMPTS},
        )

    def has_failed(self, run: str) -> bool:
        """Whether a run is given up."""
        found = self.failure(run)
        return bool(found and found["final"])

    def clean(self) -> dict[str, int]:
        """Removes what no run needs: failures, checkpoints of made runs, leases of the dead, parts.

        Results and weights stay. Returns how many files of each kind went.
        """
        gone = {"failures": 0, "checkpoints": 0, "leases": 0, "logs": 0, "parts": 0}
        leases = [path for path in (self.root / "leases").iterdir() if path.name != ".lock"]
        for path in leases:
            if is_stale(path):
                gone["leases"] += _removed(path)
        for folder in ("failures", "checkpoints", "logs"):
            for path in (self.root / folder).glob("[!.]*"):
                if folder == "failures" or self.is_done(path.stem):
                    gone[folder] += _removed(path)
        busy = any(self.is_running(path.name) for path in leases)
        for path in () if busy else self.root.rglob(f".*{PART}"):
            gone["parts"] += _removed(path)
        return gone


def last_line(failure: dict[str, Any]) -> str:
    """What a run that was given up said last, of all that it said."""
    return failure["said"].strip().splitlines()[-1]


def _removed(path: Path) -> int:
    path.unlink(missing_ok=True)
    return 1
