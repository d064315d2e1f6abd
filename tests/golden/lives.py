"""Lives of models, as users lead them, and what can be seen of them: reports and predictions.

Those in `EXACT` have fixed hyperparameters and normal noise, so their numbers follow from the model
alone. So do those in `NEAR`, but there version 0.2.0 was right to three digits only: its chains
were approximate between nodes, and waves of a periodic kernel are finitely many. Those in `CLOSE`
have fixed hyperparameters and other families. Those in `LEARNED` learn everything.

Nothing here names a part of the library that users do not.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import streamgp as sgp

M12, M32, M52 = sgp.Matern12, sgp.Matern32, sgp.Matern52
FIXED: dict[str, Any] = {"learning": None, "scale": False}


class Life(NamedTuple):
    """A model, what happens to it, and what it is asked.

    Attributes:
        model: Before any data.
        batches: The arguments of its updates, in order. Those of samples that come one at a time
            are a list of such arguments.
        grid: Where it predicts at the end.
        held: Rows that it never sees, by channel.
    """

    model: sgp.ContinualGP
    batches: list[Any]
    grid: np.ndarray
    held: dict[str, tuple[np.ndarray, np.ndarray]]

    def lead(self) -> list[sgp.UpdateReport]:
        """Learn every batch."""
        reports = []
        for batch in self.batches:
            if isinstance(batch, list):
                reports += [self.model.update(*one) for one in batch]
            else:
                reports.append(self.model.update(*batch))
        return reports

    def seen(self) -> dict[str, np.ndarray]:
        """All numbers of reports and predictions. It leads the life first."""
        found = {name: [] for name in self.model.channels}
        counts, records = [], {}
        for report in self.lead():
            counts.append(
                [(report.observations.get(n, 0), report.outliers.get(n, 0)) for n in found]
            )
            for name, scores in report.log_predictive_rows.items():
                found[name].append(scores)
            for name, coverage in report.coverage.items():
                records[name] = [report.nlpd[name], report.crps[name], *coverage.values()]
        numbers = {"counts": np.array(counts)}
        for name, scores in found.items():
            prediction = self.model.predict(self.grid, name)
            numbers |= {
                f"{name}: scores": np.concatenate(scores),
                f"{name}: records": np.array(records[name]),
                f"{name}: mean": prediction.latent_mean.ravel(),
                f"{name}: variance": prediction.latent_variance.ravel(),
                f"{name}: interval": np.stack(prediction.interval(0.9)),
            }
        return numbers

    def nlpd(self) -> dict[str, float]:
        """Minus the mean log density of the rows held out. It leads the life first."""
        self.lead()
        return {
            name: -float(np.mean(self.model.predict(x, name).log_density(y)))
            for name, (x, y) in self.held.items()
        }


def signal(x: np.ndarray, number: int = 0) -> np.ndarray:
    """What channel `number` follows, over all columns of inputs."""
    x = x[:, None] if x.ndim == 1 else x
    turned = x + 0.8 * number + np.arange(x.shape[1])
    return np.prod(np.sin(1.3 * turned), axis=1) + 0.4 * np.cos(0.5 * turned[:, 0])


def _times(count: int, seed: int, end: float = 12.0, *, even: bool = True) -> np.ndarray:
    if even:
        return np.linspace(0, end, count)
    return np.sort(np.random.default_rng(seed).uniform(0, end, count))


def _noisy(x: np.ndarray, seed: int, number: int = 0, noise: float = 0.3) -> np.ndarray:
    return signal(x, number) + noise * np.random.default_rng(seed).normal(size=len(x))


def _parts(x: np.ndarray, y: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(np.array_split(x, count), np.array_split(y, count), strict=True))


# -- fixed hyperparameters and normal noise --------------------------------------------------------

KERNELS = {
    "rough": lambda: M12(1.5, 0.8),
    "default": lambda: M12(0.5, 0.2) + M32(1.5, 0.6) + M52(5.0, 0.8),
    "oscillator": lambda: sgp.SHO(4.8, 3.0, 0.7) + M12(1.0, 0.2),
    "carma": lambda: sgp.CARMA([4.0, 0.5, 0.7], [1.5], 0.9),
    "periodic": lambda: sgp.Periodic(4.8, 1.2, 0.8) + M32(2.0, 0.3),
    "waxing": lambda: sgp.Periodic(4.8, 1.2, 0.8) * M32(6.0, 1.0),
    "line": lambda: sgp.Linear(0.3) + M52(2.0, 0.7),
}


def _alone(kernel: str = "default", *, even: bool = True, **options: Any) -> Life:
    """Four batches and ten single samples of one channel."""
    x = _times(110, 1, even=even)
    y = _noisy(x, 2)
    singles = list(zip(x[100:], y[100:], strict=True))
    model = sgp.ContinualGP(
        sgp.Gaussian(noise=0.3), latents=[KERNELS[kernel]()], **{**FIXED, **options}
    )
    return Life(model, [*_parts(x[:100], y[:100], 4), singles], np.linspace(-1, 14, 31), {})


def _shuffled(even: bool) -> Life:
    """Batches in any order of time, some of them between others, with ties."""
    life = _alone(even=even)
    x = np.concatenate([batch[0] for batch in life.batches[:4]])
    x[20:24] = x[20]
    y = _noisy(x, 3)
    order = np.random.default_rng(4).permutation(len(x))
    return life._replace(batches=_parts(x[order], y[order], 5))


def _pauses() -> Life:
    """Times far from zero and far from each other, and very near ones."""
    x = 1e4 + np.concatenate([np.arange(20) / 8, 40 + np.arange(20) / 8, [300.0, 300.001, 9e3]])
    life = _alone()
    return life._replace(batches=_parts(x, _noisy(x, 5), 4), grid=np.append(x[::4] + 0.05, 2e4))


def _channels(even: bool) -> Life:
    """Three channels that share two functions; some are silent in some batches."""
    weights = {"a": [[1.0, 0.2]], "b": [[-0.6, 1.1]], "c": [[0.3, 0.9]]}
    model = sgp.ContinualGP(
        {name: sgp.Gaussian(noise=0.2 + 0.1 * d) for d, name in enumerate(weights)},
        latents=[M32(1.5), M12(0.6) + M52(4.0, 0.5)],
        mixing={name: sgp.fixed(np.array(w)) for name, w in weights.items()},
        **FIXED,
    )
    batches = []
    for begin in range(4):
        batch = {}
        for d, name in enumerate(weights):
            if (begin + d) % 4 != 3:
                x = 3.0 * begin + _times(15, 10 * begin + d, 3.0, even=even)
                batch[name] = (x, _noisy(x, 7 * begin + d, d))
        batches.append((batch,))
    return Life(model, batches, np.linspace(-1, 14, 16), {})


def _seasons() -> Life:
    """A trend, a season and an event in the mean."""
    mean = sgp.Constant() + sgp.Trend(spread=2.0) + sgp.Events({"sale": [(2, 3), (8, 9)]}, 1.5)
    life = _alone("rough", mean=mean, seasons=[sgp.Seasonal(4.8, harmonics=2, spread=0.7)])
    batches = [(x, y + 2.0 * ((x >= 2) & (x <= 3))) for x, y in life.batches[:4]]
    return life._replace(batches=batches)


def _measured() -> Life:
    """Every observation brings its error and its weight."""
    life = _alone("default")
    model = sgp.ContinualGP(
        sgp.Weighted(sgp.Gaussian(noise=0.2, error=True)),
        latents=[KERNELS["default"]()], **FIXED,
    )  # fmt: skip
    rng = np.random.default_rng(8)
    batches = [
        (x, np.column_stack([y, rng.uniform(0.05, 0.4, len(x)), rng.integers(1, 4, len(x))]))
        for x, y in life.batches[:4]
    ]
    return life._replace(model=model, batches=batches)


def _positive() -> Life:
    """A log-normal channel."""
    life = _alone("default")
    model = sgp.ContinualGP(sgp.LogNormal(noise=0.3), latents=[KERNELS["default"]()], **FIXED)
    return life._replace(model=model, batches=[(x, np.exp(y)) for x, y in life.batches[:4]])


def _strange(rule: str) -> Life:
    """Values far out, which are left out or count less."""
    life = _alone("default", outliers=rule)
    x, y = life.batches[2]
    y = y.copy()
    y[[5, 15]] += [9.0, -6.0]
    return life._replace(batches=[*life.batches[:2], (x, y), *life.batches[3:]])


def _table(inputs: int, channels: int, **options: Any) -> Life:
    """Rows over several inputs, with inducing points that are given."""
    rng = np.random.default_rng(inputs)
    names = ["a", "b"][:channels]
    points = rng.uniform(0, 3, (25, inputs))
    scales = np.linspace(0.9, 1.6, inputs)
    weights = {"a": [[1.0, 0.3]], "b": [[-0.4, 1.2]]}
    model = sgp.ContinualGP(
        {name: sgp.Gaussian(noise=0.2) for name in names},
        latents=[sgp.RBF(scales), M32(scales)][:channels],
        mixing={n: sgp.fixed(np.array(weights[n])) for n in names} if channels > 1 else None,
        inducing=sgp.Fixed(points),
        **{**FIXED, **options},
    )
    batches = []
    for number in range(4):
        x = rng.uniform(0, 3, (30, inputs))
        rows = {n: (x[d::channels], _noisy(x[d::channels], number, d, 0.2))
                for d, n in enumerate(names)}  # fmt: skip
        batches.append((rows,))
    return Life(model, batches, rng.uniform(-0.2, 3.2, (15, inputs)), {})


NEAR: dict[str, Callable[[], Life]] = {
    "waxing": lambda: _alone("waxing"),
    "periodic": lambda: _alone("periodic"),
    "irregular": lambda: _alone(even=False),
    "irregular oscillator": lambda: _alone("oscillator", even=False),
    "shuffled, irregular": lambda: _shuffled(False),
    "pauses": _pauses,
    "channels, irregular": lambda: _channels(False),
}
EXACT: dict[str, Callable[[], Life]] = {
    **{name: lambda name=name: _alone(name) for name in KERNELS if name not in NEAR},
    "shuffled": lambda: _shuffled(True),
    "channels": lambda: _channels(True),
    "seasons": _seasons,
    "no level": lambda: _alone(mean=None),
    "measured": _measured,
    "positive": _positive,
    "forgetting": lambda: _alone(forgetting=0.9),
    "forgetting by time": lambda: _alone(forgetting=sgp.Forgetting(0.5, per=3.0)),
    "outliers left out": lambda: _strange("skip"),
    "outliers count less": lambda: _strange("downweight"),
    "two inputs": lambda: _table(2, 1),
    "two inputs, two channels": lambda: _table(2, 2),
    "five inputs": lambda: _table(5, 1),
    "two inputs, forgetting": lambda: _table(2, 1, forgetting=0.8),
}


# -- other families --------------------------------------------------------------------------------


Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


class Family(NamedTuple):
    """A likelihood at fixed parameters, and how its observations are drawn at f.

    Where observations are several numbers, `alone` draws what a prediction is of.
    """

    likelihood: sgp.Likelihood
    draw: Draw
    alone: Draw | None = None

    def drawn(
        self, rng: np.random.Generator, f: np.ndarray, learned: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Observations of the rows that are learned, and of the others."""
        learn, hold = np.asarray(self.draw(rng, f), float), self.alone or self.draw
        return learn[learned], np.asarray(hold(rng, f), float)[~learned]


def _logistic(f: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-2 * f))


def _exposed(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    exposure = rng.uniform(0.5, 4.0, len(f))
    return np.column_stack([rng.poisson(exposure * np.exp(f)), exposure])


def _tried(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    trials = rng.integers(1, 12, len(f))
    return np.column_stack([rng.binomial(trials, _logistic(f)), trials])


def _bounded(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    y = f + 0.3 * rng.normal(size=len(f))
    return np.column_stack([np.minimum(y, 0.8), y > 0.8])


def _classes(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    scores = np.column_stack([f, -f, np.zeros(len(f))])
    return np.argmax(2 * scores + rng.gumbel(size=scores.shape), axis=1).astype(float)


def _grades(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    return np.digitize(f + 0.3 * rng.logistic(size=len(f)), [-0.6, 0.0, 0.8]).astype(float)


def _shares(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    shares = np.exp(np.column_stack([f, -f, np.zeros(len(f))]))
    return np.array([rng.dirichlet(8 * one / one.sum()) for one in shares])


def _votes(rng: np.random.Generator, f: np.ndarray) -> np.ndarray:
    return np.array([rng.multinomial(5, one) for one in _shares(rng, f)], float)


FAMILIES = {
    "poisson": Family(sgp.Poisson(), lambda rng, f: rng.poisson(np.exp(0.5 + f))),
    "poisson, exposure": Family(
        sgp.Poisson(exposure=True), _exposed, lambda rng, f: rng.poisson(np.exp(f))
    ),
    "bernoulli": Family(
        sgp.Bernoulli(), lambda rng, f: (rng.uniform(size=len(f)) < _logistic(f)).astype(float)
    ),
    "student": Family(
        sgp.StudentT(scale=0.3, df=4.0), lambda rng, f: f + 0.3 * rng.standard_t(4.0, len(f))
    ),
    "ordinal": Family(sgp.Ordinal(4, first=-0.6, gaps=np.array([0.6, 0.8])), _grades),
    "categorical": Family(sgp.Categorical(3), _classes),
    "binomial": Family(sgp.Binomial(7), lambda rng, f: rng.binomial(7, _logistic(f))),
    "binomial, trials": Family(
        sgp.Binomial(None), _tried, lambda rng, f: rng.binomial(1, _logistic(f))
    ),
    "negative binomial": Family(
        sgp.NegativeBinomial(concentration=3.0),
        lambda rng, f: rng.negative_binomial(3.0, 3.0 / (3.0 + np.exp(1 + f))),
    ),
    "gamma": Family(
        sgp.Gamma(shape=2.5), lambda rng, f: rng.gamma(2.5, np.exp(f) / 2.5) + 1e-3
    ),
    "exponential": Family(
        sgp.Exponential(), lambda rng, f: rng.exponential(np.exp(f)) + 1e-3
    ),
    "beta": Family(
        sgp.Beta(concentration=20.0),
        lambda rng, f: rng.beta(20 * _logistic(f), 20 * _logistic(-f)),
    ),
    "heteroscedastic": Family(
        sgp.HeteroscedasticGaussian(),
        lambda rng, f: f + np.exp(-1 + 0.5 * f) * rng.normal(size=len(f)),
    ),
    "censored": Family(
        sgp.Censored(sgp.Gaussian(noise=0.3)),
        _bounded,
        lambda rng, f: f + 0.3 * rng.normal(size=len(f)),
    ),
    "multinomial": Family(sgp.Multinomial(3), _votes),
    "dirichlet": Family(sgp.Dirichlet(3, concentration=8.0), _shares),
}  # fmt: skip


def _family(name: str, **options: Any) -> Life:
    """Three batches and ten single samples, over time."""
    family, rng = FAMILIES[name], np.random.default_rng(len(name))
    every = np.sort(rng.uniform(0, 12, 190))
    learned = np.arange(len(every)) % 10 < 6
    y, held = family.drawn(rng, signal(every), learned)
    x = every[learned]
    singles = [(one, [value]) for one, value in zip(x[-10:, None], y[-10:], strict=True)]
    model = sgp.ContinualGP(family.likelihood, latents=[M32(1.0, 0.8)], **{**FIXED, **options})
    batches = [*_parts(x[:-10], y[:-10], 3), singles]
    return Life(model, batches, np.zeros(0), {"y": (every[~learned], held)})


def _family_over_inputs(name: str, **options: Any) -> Life:
    """Three batches over two inputs."""
    (likelihood, draw, _), rng = FAMILIES[name], np.random.default_rng(len(name))
    x = rng.uniform(0, 3, (300, 2))
    y = np.asarray(draw(rng, 1.5 * signal(x)), float)
    points = rng.uniform(0, 3, (25, 2))
    given = {"inducing": sgp.Fixed(points), **FIXED, **options}
    model = sgp.ContinualGP(likelihood, latents=[sgp.RBF(0.9)], **given)
    return Life(model, _parts(x[:150], y[:150], 3), np.zeros(0), {"y": (x[150:], y[150:])})


CLOSE: dict[str, Callable[[], Life]] = {
    **{name: lambda name=name: _family(name) for name in FAMILIES},
    **{
        f"{name}, two inputs": lambda name=name: _family_over_inputs(name)
        for name in ("poisson", "bernoulli", "student", "ordinal", "categorical")
    },
    "poisson, forgetting": lambda: _family("poisson", forgetting=0.9),
}


# -- everything is learned -------------------------------------------------------------------------


def _split(x: np.ndarray, y: np.ndarray, batches: int) -> tuple[list, tuple]:
    """Batches of two thirds of the rows, and the other third."""
    held = np.arange(len(x)) % 3 == 1
    return _parts(x[~held], y[~held], batches), (x[held], y[held])


def _learned(likelihood: sgp.Likelihood | None = None, **options: Any) -> Life:
    """One channel with every setting as it is by default, but for these."""
    x = _times(360, 1, 30.0)
    batches, held = _split(x, _noisy(x, 20), 5)
    model = sgp.ContinualGP(likelihood or sgp.Gaussian(), **options)
    return Life(model, batches, np.zeros(0), {"y": held})


def _learned_season() -> Life:
    """Months with a trend and a year."""
    x = np.arange(360.0)
    y = 20 + 0.01 * x + 3 * np.sin(2 * np.pi * x / 12) + 2 * _noisy(x / 30, 21)
    batches, held = _split(x, y, 5)
    model = sgp.ContinualGP(sgp.Gaussian(), seasons=(12,))
    return Life(model, batches, np.zeros(0), {"y": held})


def _learned_family(name: str) -> Life:
    """One channel of a family, at irregular times."""
    family, rng = FAMILIES[name], np.random.default_rng(22)
    x = np.sort(rng.uniform(0, 30, 360))
    learned = np.arange(len(x)) % 3 != 1
    y, held = family.drawn(rng, signal(x), learned)
    bare = {"student": sgp.StudentT(), "ordinal": sgp.Ordinal(4)}
    model = sgp.ContinualGP(bare.get(name, family.likelihood), latents=[M32()])
    return Life(model, _parts(x[learned], y, 5), np.zeros(0), {"y": (x[~learned], held)})


def _learned_channels() -> Life:
    """Three channels of three families, at different times."""
    draws = {"real": lambda rng, f: 10 + 4 * f + rng.normal(size=len(f)),
             "count": FAMILIES["poisson"].draw, "binary": FAMILIES["bernoulli"].draw}  # fmt: skip
    likelihoods = {"real": sgp.Gaussian(), "count": sgp.Poisson(), "binary": sgp.Bernoulli()}
    batches: list[dict] = [{} for _ in range(5)]
    held = {}
    for number, (name, draw) in enumerate(draws.items()):
        rng = np.random.default_rng(number)
        x = np.sort(rng.uniform(0, 30, 300))
        parts, held[name] = _split(x, np.asarray(draw(rng, signal(x)), float), 5)
        for batch, part in zip(batches, parts, strict=True):
            batch[name] = part
    model = sgp.ContinualGP(likelihoods, latents=[M32(), M32()])
    return Life(model, [(batch,) for batch in batches], np.zeros(0), held)


def _learned_table(likelihood: sgp.Likelihood, inputs: int, name: str | None = None) -> Life:
    """Rows over several inputs; real values, or those of a family."""
    rng = np.random.default_rng(inputs)
    x = rng.uniform(0, 3, (450, inputs))
    f = signal(x[:, :2]) + 0.2 * x.sum(axis=1)
    draw = FAMILIES[name].draw if name else lambda rng, f: f + 0.15 * rng.normal(size=len(f))
    batches, held = _split(x, np.asarray(draw(rng, f), float), 5)
    return Life(sgp.ContinualGP(likelihood), batches, np.zeros(0), {"y": held})


LEARNED: dict[str, Callable[[], Life]] = {
    "default": _learned,
    "season": _learned_season,
    "oscillator": lambda: _learned(latents=[sgp.SHO(5.0, 2.0) + M12(1.0)]),
    "carma": lambda: _learned(latents=[sgp.CARMA([1.7, 0.3], [1.5])]),
    "periodic": lambda: _learned(latents=[sgp.Periodic(5.0) + M32(3.0)]),
    "forgetting": lambda: _learned(forgetting=0.98, latents=[M32()]),
    "poisson": lambda: _learned_family("poisson"),
    "poisson, exposure": lambda: _learned_family("poisson, exposure"),
    "bernoulli": lambda: _learned_family("bernoulli"),
    "student": lambda: _learned_family("student"),
    "ordinal": lambda: _learned_family("ordinal"),
    "categorical": lambda: _learned_family("categorical"),
    "channels": _learned_channels,
    "two inputs": lambda: _learned_table(sgp.Gaussian(), 2),
    "four inputs": lambda: _learned_table(sgp.Gaussian(), 4),
    "bernoulli, two inputs": lambda: _learned_table(sgp.Bernoulli(), 2, "bernoulli"),
}
