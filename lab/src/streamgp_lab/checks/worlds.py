"""Random streams with difficult data, for every likelihood."""

import dataclasses

import numpy as np

import streamgp as sgp

FAMILIES: dict[str, sgp.Likelihood] = {
    "real": sgp.Gaussian(), "binary": sgp.Bernoulli(), "probit": sgp.Bernoulli("probit"),
    "count": sgp.Poisson(), "class": sgp.Categorical(3), "robust": sgp.StudentT(),
    "two": sgp.HeteroscedasticGaussian(), "waiting": sgp.Exponential(), "amount": sgp.Gamma(),
    "share": sgp.Beta(), "trials": sgp.Binomial(7), "clumped": sgp.NegativeBinomial(),
    "grade": sgp.Ordinal(4), "income": sgp.LogNormal(),
}  # fmt: skip

Batch = dict[str, tuple[np.ndarray, np.ndarray]]

_FAR = 1e6  # in units of the inputs


@dataclasses.dataclass(frozen=True)
class World:
    """Where a stream comes from: the units of its inputs and values, and how they change.

    Values are constant before the step `jump`, and from then on they are multiplied by `factor`.
    """

    origin: float
    unit: float  # of the inputs
    size: float  # of the values
    noise: float
    jump: int
    factor: float
    width: int

    @classmethod
    def drawn(cls, generator: np.random.Generator, width: int) -> "World":
        unit = 10.0 ** generator.choice([0, 0, 0, -6, 6])
        return cls(
            origin=unit * generator.choice([0.0, 0.0, 1e3, -1e6]),
            unit=unit,
            size=10.0 ** generator.choice([0, 0, 0, -6, 6]),
            noise=generator.choice([0.0, 0.1, 1.0, 1.0]),
            jump=int(generator.choice([0, 0, 1, 3, 8])),
            factor=generator.choice([1.0, 100.0]),
            width=width,
        )

    def batch(
        self, names: list[str], step: int, largest: int, generator: np.random.Generator
    ) -> Batch:
        """Rows of some of these channels: mostly one to eight, sometimes up to `largest`."""
        chosen = generator.permutation(names)[: generator.integers(1, len(names) + 1)]
        most = largest if generator.uniform() < 0.03 else 8
        rows = max(int(generator.integers(1, most + 1)) // len(chosen), 1)
        return {str(name): self._rows(str(name), rows, step, generator) for name in chosen}

    def _rows(
        self, name: str, rows: int, step: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        x = self._places(rows, step, generator)
        f = 2 * np.sin(1.5 * x[:, 0]) if step >= self.jump else np.zeros(rows)
        noise = self.noise if step >= self.jump else 0.0
        factor = self.factor if step >= self.jump else 1.0
        if generator.uniform() < 0.02:
            f[0] = generator.choice([-20.0, 20.0])
        y = observed(name, f, noise, factor * self.size, generator)
        return self.origin + self.unit * (x[:, 0] if self.width == 1 else x), y

    def _places(self, rows: int, step: int, generator: np.random.Generator) -> np.ndarray:
        """Inputs anywhere so far, at the front, all at one place, or far away."""
        front, shape = 1 + min(step, 80) / 10, (rows, self.width)
        kind = generator.uniform()
        if kind < 0.4:
            x = generator.uniform(0, front, shape)
        elif kind < 0.8:
            x = front + 0.1 * generator.uniform(size=shape)
        elif kind < 0.98:
            x = np.repeat(generator.integers(0, 9, (1, self.width)) / 1.0, rows, axis=0)
        else:
            x = generator.choice([-_FAR, _FAR]) + generator.uniform(0, 1, shape)
        again = generator.uniform(size=rows) < 0.2
        return np.where(again[:, None], x[:1], x)


def observed(
    name: str, f: np.ndarray, noise: float, size: float, generator: np.random.Generator
) -> np.ndarray:
    """Observations around f. Those with a unit have that size."""
    spread = f + noise * generator.normal(size=len(f))
    log_rate = np.clip(spread + np.log(size), -40, 20)
    odds = 1 / (1 + np.exp(-np.clip(spread, -30, 30)))
    positive = size * np.exp(spread)
    values = {
        "real": size * spread,
        "robust": size * (f + noise * generator.standard_t(2, size=len(f))),
        "two": size * (f + noise * np.exp(np.clip(f, -4, 4)) * generator.normal(size=len(f))),
        "binary": spread > 0,
        "probit": spread > 0,
        "count": generator.poisson(np.exp(log_rate)),
        "clumped": generator.poisson(np.exp(log_rate) * generator.exponential(size=len(f))),
        "class": np.clip(np.round(spread + 1), 0, 2),
        "grade": np.clip(np.round(spread + 1.5), 0, 3),
        "trials": generator.binomial(7, odds),
        "share": np.clip(odds, 1e-12, 1 - 1e-12),
        "waiting": positive * (generator.exponential(size=len(f)) + 1e-12 if noise else 1.0),
        "amount": positive,
        "income": positive,
    }
    return np.asarray(values[name], float)
