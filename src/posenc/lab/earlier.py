"""Results of runs whose encodings have changed since: a report shows them, and says so."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from posenc.lab.configuration import Configuration
from posenc.lab.store import Store


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
        whole = [each for each in self.store.results() if self.base_of(each) is not None]
        whole.sort(key=lambda each: each["date"])
        return {_sameness(each["configuration"]): each for each in whole}


def _sameness(written: dict[str, Any]) -> str:
    """A configuration without what tells sources apart."""
    extension = written["extension"] and {**written["extension"], "version": "", "of": ""}
    return json.dumps({**written, "version": "", "extension": extension}, sort_keys=True)
