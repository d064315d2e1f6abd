"""From the index of a series, and exogenous variables beside it, to inputs of a model."""

from typing import Any

import numpy as np
import pandas as pd

from streamgp.errors import DataError, problem

TIME = "time"  # the name of the first input


def inputs(index: pd.Index, exogenous: pd.DataFrame | None) -> pd.DataFrame:
    """Inputs at the times of an index.

    Args:
        index: Whole numbers, times or periods. A period stands where it begins.
        exogenous: Exogenous variables, with rows for at least those times; or None.

    Returns:
        A frame with the column `time` and one column per exogenous variable.

    Raises:
        DataError: If exogenous variables are missing at a time, or one is called `time`.
    """
    time = pd.DataFrame({TIME: _times(index)})
    if exogenous is None:
        return time
    names = [str(name) for name in exogenous.columns]
    if TIME in names:
        raise DataError(
            problem(
                f"exogenous variables with other names than {TIME!r}, which is the index",
                str(names),
                "Rename the column.",
            )
        )
    absent = index.difference(exogenous.index)
    if len(absent):
        raise DataError(
            problem(
                "exogenous variables at every time",
                f"none at {absent[0]} ({len(absent)} such)",
                "Pass an `X` with rows for all times of `y` or of the forecasting horizon.",
            )
        )
    beside = exogenous.loc[index].set_axis(names, axis="columns").reset_index(drop=True)
    return pd.concat([time, beside.astype(float)], axis="columns")


def _times(index: pd.Index) -> Any:
    is_time = isinstance(index, pd.DatetimeIndex | pd.PeriodIndex)
    return index if is_time else np.asarray(index, float)
