"""What `streamgp run` has to know in order to continue a stream.

It is saved inside the model's file. One atomic write so replaces the model and its bookkeeping
together, and no crash can leave one of them ahead of the other.
"""

import dataclasses
from typing import Any

import streamgp as sgp

_KEY = "run"
_IN_NOTES = frozenset({"rows", "history", "config", "predictions"})


@dataclasses.dataclass
class Bookkeeping:
    """The state of a run at its last snapshot.

    Attributes:
        rows: The number of rows that were taken: those that the model has learned, and those
            that were left out.
        history: The scores of some of the batches, in order.
        config: The configuration that the model was made with; None if no run has made it.
        predictions: The size in bytes of the file of predictions.
        place: How far what is followed was read; None if nothing is followed.
        kinds: What columns hold, as their first cells have shown it.
        left_out: The number of rows that were left out, by reason.
    """

    rows: int = 0
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    config: dict[str, Any] | None = None
    predictions: int = 0
    place: dict[str, Any] | None = None
    kinds: dict[str, str] = dataclasses.field(default_factory=dict)
    left_out: dict[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, model: sgp.ContinualGP) -> "Bookkeeping":
        """Read the bookkeeping of a model.

        Earlier versions kept it in the model's `notes`. If it is there, it is moved: the notes
        are the user's.

        Args:
            model: A model that was just loaded, or a new one.

        Returns:
            The bookkeeping; that of a run that has not begun if no run has fed this model.
        """
        if _KEY not in model._bookkeeping and model.notes.keys() >= _IN_NOTES:
            model._bookkeeping[_KEY] = {name: model.notes.pop(name) for name in _IN_NOTES}
        return cls(**model._bookkeeping.get(_KEY, {}))

    def put_into(self, model: sgp.ContinualGP) -> None:
        """Write the bookkeeping into a model, so that the next `save` stores both."""
        kept = dataclasses.asdict(self)
        if self.place is None:  # as earlier versions, which followed no files, can read it
            del kept["place"]
        model._bookkeeping[_KEY] = kept
