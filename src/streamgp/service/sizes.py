"""Sizes: how much may be asked for in one prediction."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgp.errors import problem
from streamgp.service.problems import RefusedError
from streamgp.service.settings import Limits

BRIEF = 2_000  # inputs times channels that are predicted in no time, whatever is asked of them


def check_inputs(inputs: int, channels: int, limits: Limits) -> None:
    """Refuse more inputs than may be predicted at a time."""
    if inputs * channels > limits.predictions:
        raise RefusedError(
            413,
            problem(
                f"at most {limits.predictions} inputs times channels in one prediction",
                f"{inputs} times {channels}",
                "Ask for fewer inputs or channels at a time.",
            ),
        )


def check_answer(parts: Any, limits: Limits, rows: int = 1) -> None:
    """Refuse an answer with more numbers than one may have.

    Args:
        parts: The answer, or its part for one input.
        limits: How many it may have.
        rows: How many such parts it has.
    """
    size = _size(parts) * rows
    if size > limits.answer:
        raise RefusedError(
            413,
            problem(
                f"at most {limits.answer} numbers (inputs times columns) in one answer",
                f"{size}",
                "Ask for fewer inputs, channels, quantiles or components at a time.",
            ),
        )


def _size(parts: Any) -> int:
    """How many numbers and labels the arrays of an answer have together."""
    if isinstance(parts, np.ndarray):
        return parts.size
    if isinstance(parts, Mapping):
        return sum(map(_size, parts.values()))
    return 0
