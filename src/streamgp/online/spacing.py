"""Spacing: whether the rows of a stream can show its seasons, as soon as there are a few rows."""

from collections.abc import Sequence

import numpy as np

from streamgp.data.axes import Axis
from streamgp.data.batch import Rows
from streamgp.data.spacing import FEWEST, is_told
from streamgp.model.means import column_of
from streamgp.model.specification import Specification
from streamgp.online.progress import Progress
from streamgp.parameters import replaced


def is_known(specification: Specification, progress: Progress) -> bool:
    """Whether it is known how far apart rows are, as far as seasons ask for it."""
    columns = _columns(specification, progress.schema.axes)
    return all(len(progress.places.get(column, ())) > FEWEST for column in columns)


def spaced(specification: Specification, progress: Progress, rows: Rows) -> Progress:
    """The progress with the places of rows that come next, as long as these are the first ones.

    Args:
        specification: Of the model.
        progress: Before the rows.
        rows: Those that come next.

    Raises:
        ConfigurationError: If no rows that are spaced like the first ones can show a season.
    """
    if is_known(specification, progress):
        return progress
    axes = progress.schema.axes or (Axis(),) * rows.x.shape[1]
    places = dict(progress.places)
    for column in _columns(specification, axes):
        known = places.get(column, ())
        if len(known) > FEWEST:
            continue
        x = np.unique(np.concatenate([known, rows.x[:, column]]))
        if is_told(x):
            for season in specification.all_seasons:
                if column_of(season.on, axes) == column:
                    season.check_rows(x, axes[column])
        places[column] = tuple(x[: FEWEST + 1].tolist())
    return replaced(progress, places=places)


def _columns(specification: Specification, axes: Sequence[Axis]) -> list[int]:
    """The input columns that have seasons."""
    return sorted({column_of(season.on, axes) for season in specification.all_seasons})
