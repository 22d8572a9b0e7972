"""The folder of results: one JSON file a run is the truth; all else can be made again."""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout
from safetensors.torch import load, save
from torch import Tensor

from posenc.lab.configuration import Configuration

ENDINGS = {"results": ".json", "weights": ".safetensors", "failures": ".json", "logs": ".log",
           "locks": ".lock"}  # fmt: skip
"""The folders, and how the name of a run's file ends in each."""

MOST_ATTEMPTS = 3
"""How often a run is begun whose process dies; one that raises an error would raise it again."""

PART = ".part"


@dataclass(frozen=True)
class Store:
    """Runs by their id, in a folder that is made where it is not there.

    Example:
        >>> import tempfile
        >>> store = Store(Path(tempfile.mkdtemp()))
        >>> store.keep("abc", {"outcome": {}}), list(store.done())
        (None, ['abc'])
    """

    root: Path

    def __post_init__(self):
        for name in ENDINGS:
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def path(self, folder: str, run: str) -> Path:
        """Where a run's file of one kind stands."""
        return self.root / folder / f"{run}{ENDINGS[folder]}"

    def result(self, run: str) -> dict[str, Any] | None:
        """What a run gave; None if it is not made yet."""
        return read_json(self.path("results", run))

    def is_done(self, run: str) -> bool:
        return self.path("results", run).is_file()

    def done(self) -> list[str]:
        """The runs that are made."""
        return self._runs("results")

    def results(self) -> Iterator[dict[str, Any]]:
        """What they gave."""
        yield from filter(None, map(self.result, self.done()))

    def keep(self, run: str, result: dict[str, Any]) -> None:
        """A finished run."""
        _write_json(self.path("results", run), result)
        self.path("failures", run).unlink(missing_ok=True)

    def keep_weights(self, run: str, weights: dict[str, Tensor]) -> None:
        """The tensors of a finished run."""
        # Layers may share what they learn; the format holds each name's own.
        kept = {name: each.clone().contiguous() for name, each in weights.items()}
        with whole(self.path("weights", run)) as file:
            file.write(save(kept))

    def weights(self, run: str) -> dict[str, Tensor]:
        """The tensors of a run that is made."""
        return load(self.path("weights", run).read_bytes())

    def lock(self, run: str, timeout: float = 1.0) -> FileLock:
        """The right to make a run; it ends with the process that acquired it."""
        return FileLock(self.path("locks", run), timeout=timeout)

    def is_running(self, run: str) -> bool:
        """Whether a living process makes it."""
        if not self.path("locks", run).exists():
            return False
        try:
            with self.lock(run, timeout=0):
                return False
        except Timeout:
            return True

    def note_failure(self, run: str, said: str, *, final: bool) -> None:
        """Writes down an attempt that failed; a final one is not repeated."""
        path = self.path("failures", run)
        attempts = (read_json(path) or {"attempts": 0})["attempts"] + 1
        told = {"attempts": attempts, "said": said, "final": final or attempts >= MOST_ATTEMPTS}
        _write_json(path, told)

    def has_failed(self, run: str) -> bool:
        """Whether a run is given up."""
        return (read_json(self.path("failures", run)) or {"final": False})["final"]

    def failures(self) -> dict[str, str]:
        """What each run that was given up said last."""
        found = {run: read_json(self.path("failures", run)) for run in self._runs("failures")}
        return {
            r: each["said"].strip().splitlines()[-1] for r, each in found.items() if each["final"]
        }

    def clean(self) -> dict[str, int]:
        """Removes failures, logs of made runs, and what killed processes have left; results stay.

        Returns how many files of each kind went.
        """
        locks = self._runs("locks")
        free = [run for run in locks if not self.is_running(run)]
        logs = filter(self.is_done, self._runs("logs"))
        runs = {"failures": self._runs("failures"), "logs": logs, "locks": free}
        gone = {name: [self.path(name, run) for run in found] for name, found in runs.items()}
        gone["parts"] = list(self.root.rglob(f".*{PART}")) if free == locks else []
        for path in chain(*gone.values()):
            path.unlink(missing_ok=True)
        return {name: len(paths) for name, paths in gone.items()}

    def _runs(self, folder: str) -> list[str]:
        return sorted(path.stem for path in (self.root / folder).glob("[!.]*"))


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it takes the name ``path`` once it is on disk."""
    passing = path.with_name(f".{path.name}.{secrets.token_hex(6)}{PART}")
    try:
        with open(passing, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(passing, path)
    finally:
        passing.unlink(missing_ok=True)


def _write_json(path: Path, value: Any) -> None:
    """``value`` as JSON that a person can read."""
    with whole(path) as file:
        file.write((json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """What ``path`` holds; None if it is not there."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); remove it, and run again.") from None


@dataclass
class Results:
    """The result of a configuration: its own, or the last one with another source of encodings."""

    store: Store
    earlier: set[str] = field(default_factory=set)  # runs that were answered by an earlier one

    def of(self, configuration: Configuration) -> dict[str, Any] | None:
        """What a run gave; None where neither it nor an earlier one is made."""
        own = self.store.result(configuration.id)
        if own is not None and self.base_of(own) is not None:
            return own
        found = self._known.get(_sameness(configuration.written()))
        if found is not None:
            self.earlier.add(configuration.id)
        return found

    def base_of(self, result: dict[str, Any]) -> dict[str, Any] | None:
        """The result of the very run that ``result`` extends; itself where it extends none."""
        extension = result["configuration"]["extension"]
        return result if extension is None else self.store.result(extension["of"])

    @cached_property
    def _known(self) -> dict[str, dict[str, Any]]:
        found = [each for each in self.store.results() if self.base_of(each) is not None]
        found.sort(key=lambda each: each["date"])
        return {_sameness(each["configuration"]): each for each in found}


def _sameness(written: dict[str, Any]) -> str:
    """A configuration without what tells sources apart."""
    extension = written["extension"] and {**written["extension"], "version": "", "of": ""}
    return json.dumps({**written, "version": "", "extension": extension}, sort_keys=True)
