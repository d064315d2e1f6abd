"""The synthetic functions of the paper, and data drawn from them (its Appendix D)."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

WEIGHTS = np.array([[-0.5, -0.1], [0.1, 0.6]])  # channel by latent function
NOISES = {"first": 1.0, "second": 2.0}
NOISE = 1.5
TEST_SHARE = 0.33


class Series(NamedTuple):
    """Observations in the order of their inputs. `test` marks those that are held out."""

    x: Float[np.ndarray, " N"]
    y: Float[np.ndarray, " N"]
    test: Bool[np.ndarray, " N"]


def first_latent(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    return (
        4.5 * np.cos(2 * np.pi * x + 1.5 * np.pi)
        - 3 * np.sin(4.3 * np.pi * x + 0.3 * np.pi)
        + 5 * np.cos(7 * np.pi * x + 2.4 * np.pi)
    )


def second_latent(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    return (
        4.5 * np.cos(1.5 * np.pi * x + 0.5 * np.pi)
        + 5 * np.sin(3 * np.pi * x + 1.5 * np.pi)
        - 5.5 * np.cos(8 * np.pi * x + 0.25 * np.pi)
    )


def one_channel(seed: int, rows: int = 2000) -> Series:
    """The first function with noise 1.5. A third is held out."""
    generator = np.random.default_rng(seed)
    x = np.sort(generator.uniform(0, 1, rows))
    y = first_latent(x) + NOISE * generator.normal(size=rows)
    return Series(x, y, generator.uniform(size=rows) < TEST_SHARE)


def two_channels(seed: int, rows: int = 2000) -> dict[str, Series]:
    """Two channels that mix both functions, each with its own inputs."""
    generator = np.random.default_rng(seed)
    channels = {}
    for (name, noise), weights in zip(NOISES.items(), WEIGHTS, strict=True):
        x = np.sort(generator.uniform(0, 1, rows))
        f = weights @ np.stack([first_latent(x), second_latent(x)])
        y = f + noise * generator.normal(size=rows)
        channels[name] = Series(x, y, generator.uniform(size=rows) < TEST_SHARE)
    return channels
