"""Random lives of models: at any point each can be saved, read back, and goes on the same.

Numbers of NumPy's, arrays without dimensions and whole numbers come into a model from data and from
settings. What holds them must be read as it was written.
"""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.leaves import leaves

import streamgp as sgp
from streamgp import persistence

FAMILIES = {
    "real": sgp.Gaussian(), "exact": sgp.Gaussian(noise=0.1), "robust": sgp.StudentT(),
    "two": sgp.HeteroscedasticGaussian(), "binary": sgp.Bernoulli(), "count": sgp.Poisson(),
    "clumped": sgp.NegativeBinomial(), "amount": sgp.Gamma(), "income": sgp.LogNormal(),
    "share": sgp.Beta(), "trials": sgp.Binomial(7), "class": sgp.Categorical(3),
    "grade": sgp.Ordinal(4), "wait": sgp.Exponential(), "kinds": sgp.Multinomial(3),
    "parts": sgp.Dirichlet(3), "rate": sgp.Poisson(exposure=True), "hits": sgp.Binomial(None),
    "measured": sgp.Gaussian(error=True), "bounded": sgp.Censored(sgp.LogNormal()),
    "weighed": sgp.Weighted(sgp.StudentT()),
}  # fmt: skip
OVER_ONE = {
    "default": None, "season": sgp.Matern52() + sgp.Periodic(), "rough": sgp.Matern12(),
    "carma": sgp.CARMA([2.0, 1.0], [1.0]), "sho": sgp.SHO() * sgp.Matern32(),
}  # fmt: skip
OVER_ANY = {
    "default": None, "smooth": sgp.RBF(), "sum": sgp.RBF() + 0.5 * sgp.Matern32(),
    "product": sgp.RBF() * sgp.Matern52(), "column": sgp.RBF().on(0) + sgp.Linear(),
    "quadratic": sgp.RationalQuadratic(), "shared": [(sgp.RBF(), np.int64(2))],
}  # fmt: skip
PASTS = {
    "default": {}, "rows": {"engine": "dense"}, "few rows": {"keep": 12},
    "all rows": {"keep": None}, "no rows": {"keep": 0}, "points": {"inducing": sgp.Adaptive()},
    "few points": {"inducing": sgp.Adaptive(budget=np.int64(12))},
    "clusters": {"inducing": sgp.KMeans(5)},
}  # fmt: skip
EXPONENTS = st.integers(-9, 9)
SAME = 1e-6  # in standard deviations, and in sizes of what is predicted
LEARNING = sgp.VEM(rounds=1, evaluations=4)
ROUNDS = settings(
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),  # a failure is shown as it was found: to shrink it takes minutes
)


class Life(NamedTuple):
    """What a model is, and what it will see."""

    names: tuple[str, ...]
    settings: dict
    width: int
    origin: float
    unit: float  # of the inputs
    size: float  # of the values
    drift: float  # how much further than the last each batch reaches
    seed: int

    def model(self) -> sgp.ContinualGP:
        channels = {name: FAMILIES[name] for name in self.names}
        return sgp.ContinualGP(channels, learning=LEARNING, **self.settings)

    def batch(self, step: int) -> dict:
        """Rows of some channels, from the ground that has been reached by then."""
        generator = np.random.default_rng((self.seed, step))
        chosen = [name for name in self.names if step == 0 or generator.uniform() < 0.7]
        return {name: self._rows(name, step, generator) for name in chosen or self.names[:1]}

    def _rows(self, name: str, step: int, generator: np.random.Generator) -> tuple:
        rows = int(generator.choice([1, 4, 12]))
        reach = np.where(np.arange(self.width) == 0, 1 + self.drift * step, 1.0)
        x = reach * generator.uniform(size=(rows, self.width))
        f = np.sin(3 * x.sum(axis=1)) + 0.1 * generator.normal(size=rows)
        x = self.origin + self.unit * (x[:, 0] if self.width == 1 else x)
        values = {
            "binary": f > 0,
            "count": generator.poisson(np.exp(f)),
            "clumped": generator.poisson(np.exp(f)),
            "amount": self.size * np.exp(f),
            "income": self.size * np.exp(f),
            "share": 0.5 + 0.4 * f / (1 + abs(f)),
            "trials": generator.integers(0, 8, rows),
            "class": generator.integers(0, 3, rows),
            "grade": generator.integers(0, 4, rows),
            "wait": self.size * np.exp(f),
            "kinds": generator.multinomial(5, [0.2, 0.3, 0.5], rows),
            "parts": generator.dirichlet([1.0, 2.0, 3.0], rows),
            "rate": np.column_stack([generator.poisson(np.exp(f)), 0.5 + f**2]),
            "hits": np.column_stack([generator.integers(0, 3, rows), np.full(rows, 4)]),
            "measured": self.size * np.column_stack([f, np.full(rows, 0.2)]),
            "bounded": np.column_stack([self.size * np.exp(f), generator.integers(-1, 2, rows)]),
            "weighed": np.column_stack([self.size * f, 0.5 + f**2]),
        }
        return x, values.get(name, self.size * f)


@st.composite
def lives(draw, family, most=3):
    """Of a family and up to two others, over one to `most` inputs."""
    width = draw(st.integers(1, most))
    others = st.sampled_from([name for name in FAMILIES if name != family])
    names = [family, *draw(st.lists(others, max_size=2, unique=True))]
    kernels = OVER_ONE | OVER_ANY if width == 1 else OVER_ANY
    asked = {
        "latents": kernels[draw(st.sampled_from(list(kernels)))],
        **PASTS[draw(st.sampled_from(list(PASTS)))],
        "forgetting": draw(st.sampled_from([1.0, 1, 0.9])),
        "outliers": draw(st.sampled_from(["keep", "skip", "downweight"])),
        "mean": draw(st.sampled_from([sgp.Constant(), None, sgp.Constant() + sgp.Trend()])),
        "weight_uncertainty": draw(st.booleans()),
    }
    unit = 10.0 ** draw(EXPONENTS)
    return Life(
        tuple(names),
        asked,
        width,
        unit * draw(st.sampled_from([0.0, 0.0, -100.0])),
        unit,
        10.0 ** draw(EXPONENTS),
        draw(st.sampled_from([0.0, 1.0, 8.0])),
        draw(st.integers(0, 10**6)),
    )


def bits(model):
    """Every number that the next update depends on, to the last bit, with its type."""
    numbers = leaves(model._version.progress)
    return [(number.dtype, number.shape, number.tobytes()) for number in numbers]


def read_back(model):
    """The model from its bytes; the same comes from the pieces that stores keep."""
    data = model.to_bytes()
    again = sgp.from_bytes(data)
    assert bits(again) == bits(model)
    assert again.to_bytes() == data
    whole = persistence.Contents(*model._version, model.notes, model._bookkeeping)
    apart = persistence.take_apart(whole)
    stored = persistence.put_together(apart.head, [piece.data for piece in apart.pieces])
    assert persistence.pack(*stored) == data
    return again


def assert_predicts_the_same(one, other, x):
    """Up to the rounding of what a model has computed before and keeps, and a file does not."""
    for name in one.channels:
        mine, its = one.predict(x, name), other.predict(x, name)
        spread = np.sqrt(mine.latent_variance)
        assert np.isfinite(spread).all()
        apart = abs(its.latent_mean - mine.latent_mean)
        assert np.all(apart <= SAME * (spread + abs(mine.latent_mean)))
        np.testing.assert_allclose(np.sqrt(its.latent_variance), spread, rtol=SAME)


@pytest.mark.filterwarnings("ignore::streamgp.errors.EpochWarning")  # some units are of 1e9
@pytest.mark.parametrize("family", FAMILIES)
@settings(ROUNDS, max_examples=2)
@given(data=st.data())
def test_any_model_goes_on_from_its_bytes(family, data):
    life = data.draw(lives(family))
    model = read_back(life.model())
    for step in range(4):
        batch = life.batch(step)
        model.update(batch)
        again = read_back(model)
        assert_predicts_the_same(model, again, next(iter(batch.values()))[0])
        model = again
