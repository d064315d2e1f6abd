"""ContinualGP: the object people hold. It checks, places points, calls the learner, reports."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
from jaxtyping import Float
from tinygp.kernels import Kernel

from streamgp import setup
from streamgp.data import Batch, arrays, pack, row_bucket
from streamgp.errors import ConfigurationError, DataError, NumericalError, problem
from streamgp.generative import Generative
from streamgp.inducing import Adaptive, Strategy, View, place
from streamgp.inference.carry import Carry, Projection
from streamgp.intake import Parts, gather
from streamgp.learner import VEM, Info, Learner, State
from streamgp.likelihoods import Likelihood
from streamgp.parameters import Parameter
from streamgp.precision import double_precision
from streamgp.prediction import Prediction
from streamgp.report import UpdateReport

_log = logging.getLogger(__name__)

_step = eqx.filter_jit(Learner.step)
_move = eqx.filter_jit(Learner.move)
_predict = eqx.filter_jit(Learner.predict)
_latent_precision = eqx.filter_jit(Generative.latent_precision)

_PLACEMENTS = 3  # how often one update may place points anew as its kernels are learned
_PREDICT_ROWS = 4096  # rows a prediction takes at a time


class ContinualGP:
    """A multi-task Gaussian process that learns from a stream and keeps none of it.

    Args:
        channels: a likelihood, for a single channel, or a dictionary of them by name.
        latents: how many latent functions the channels share, or their kernels; `(kernel, n)`
            stands for n functions drawn from one kernel. By default one for a single channel
            with one latent parameter, else one a latent parameter, at most three.
        inducing: a placement strategy: `Adaptive`, `Growing`, `Fixed`, or a function of a `View`.
        learning: `VEM`, or None to leave all hyperparameters where they start.
        mixing: mixing weights (J, Q) of some channels to start from, or `fixed` ones.
        factorised: keep a posterior per latent function instead of a joint one: cheaper for many
            latents, blind to their posterior correlation.
        carry: the rule for dropped inducing points: `Projection` or `Marginals`.
        seed: of the random start of the mixing weights.

    Example:
        >>> import numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Gaussian())
        >>> x = np.linspace(0, 6, 60)
        >>> for batch in np.split(x, 3):
        ...     report = model.update(batch, np.sin(batch))
        >>> bool(np.max(np.abs(model.predict(x).mean - np.sin(x))) < 1e-3)
        True
    """

    def __init__(
        self,
        channels: Likelihood | Mapping[str, Likelihood],
        *,
        latents: int | Sequence[Kernel | tuple[Kernel, int]] | None = None,
        inducing: Strategy = Adaptive(),  # noqa: B008 (frozen)
        learning: VEM | None = VEM(),  # noqa: B008 (frozen)
        mixing: Mapping[str, Parameter] | None = None,
        factorised: bool = False,
        carry: Carry = Projection(),  # noqa: B008 (frozen)
        seed: int = 0,
    ):
        named = dict(channels) if isinstance(channels, Mapping) else {"y": channels}
        self._setup = setup.Setup(named, latents, mixing or {}, seed)
        self._strategy = inducing
        self._learner = Learner(learning, carry, factorised)
        self._state: State | None = None
        self._seen = dict.fromkeys(named, 0)
        self._updates = 0

    # -- what the model is -------------------------------------------------------------------

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels, in order."""
        return tuple(self._seen)

    @property
    def observations(self) -> dict[str, int]:
        """How many observations each channel has given so far."""
        return dict(self._seen)

    @property
    def inducing_points(self) -> tuple[Float[np.ndarray, "_ P"], ...]:
        """The inducing points of each latent function."""
        return () if self._state is None else _points(self._state)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Kernel parameters of each latent function; weights and parameters of each channel."""
        return {} if self._state is None else setup.describe(self._state.model, self.channels)

    @property
    def state(self) -> State | None:
        """The functional core's state, for use with `Learner`; None before the first update."""
        return self._state

    @property
    def learner(self) -> Learner:
        return self._learner

    def __repr__(self) -> str:
        families = ", ".join(f"{n}: {type(c).__name__}" for n, c in self._setup.channels.items())
        sizes = "+".join(str(len(points)) for points in self.inducing_points) or "no"
        return (
            f"<ContinualGP {{{families}}}; {self._updates} updates, "
            f"{sum(self._seen.values())} observations, {sizes} inducing points>"
        )

    # -- learning ------------------------------------------------------------------------------

    @double_precision
    def update(self, data: Any, y: Any = None) -> UpdateReport:
        """Fold a batch in and let go of it.

        Call it as `update(x, y)` where there is a single channel, or
        `update({name: (x, y), …})` with any subset of the channels and any number of
        observations of each. If anything is wrong with the data an error says what, and the
        model is as it was.
        """
        begin = time.perf_counter()
        width = None if self._state is None else self._state.inducing.points.shape[-1]
        parts = gather(data, y, self._setup.channels, width)
        before = self._state or self._setup.initial(self._learner, parts)
        before = self._setup.introduce(before, parts, self._seen)
        index = {name: i for i, name in enumerate(self.channels)}
        batch = pack([(index[name], x, y) for name, (x, y) in parts.items()])
        x = np.concatenate([x for x, _ in parts.values()])
        start = before.model
        known = np.concatenate([x[:0], *_points(before)])
        if len(known) and not setup.spread_of(known).any():  # so far all came from one place
            start = self._setup.rescaled(start, np.concatenate([known, x]), parts)
        after, info = self._fold(before, batch, x, start)
        report = self._report(parts, before, after, info, time.perf_counter() - begin)
        self._state, self._updates = after, self._updates + 1
        for name, count in report.observations.items():
            self._seen[name] += count
        _log.info("%s", report)
        return report

    @double_precision
    def add_channel(
        self, name: str, likelihood: Likelihood, *, weights: Parameter | None = None
    ) -> None:
        """A new channel, at any time. Until it has data, its predictions are the prior's."""
        if name in self._seen:
            raise ConfigurationError(
                problem("a new channel name", f"{name!r}, which exists", "Choose another name.")
            )
        self._state = self._setup.add(self._state, name, likelihood, weights)
        self._seen[name] = 0

    def _fold(
        self, before: State, batch: Batch, x: Float[np.ndarray, "N P"], start: Generative
    ) -> tuple[State, Info]:
        """Place points, learn, and look whether the learned kernels want more points."""
        kept = _points(before)
        points: tuple | None = None
        scores = None  # of the rows before anything was learned from them
        for _ in range(_PLACEMENTS):
            wanted = self._place(kept, x, start, batch)
            if points is not None and _suffice(points, wanted):
                break
            points = wanted
            inducing = setup.inducing(points)
            moved = (
                setup.extended(before, inducing)
                if setup.extends(kept, points)
                else _move(self._learner, before, inducing)
            )
            after, info = _step(self._learner, moved, batch, start)
            scores = info.log_predictive if scores is None else scores
            start = after.model
            if not getattr(self._strategy, "follows_kernels", False):
                break
        if not _finite(after):
            raise NumericalError(
                "the update did not end in finite numbers; the model is as it was. "
                "Please report the batch that did this."
            )
        return after, info if scores is None else info._replace(log_predictive=scores)

    def _place(
        self, points: tuple, x: Float[np.ndarray, "N P"], model: Generative, batch: Batch
    ) -> tuple:
        plain = paramax.unwrap(model)
        precision = np.asarray(_latent_precision(plain, batch))[:, : len(x)]
        view = View(points, x, plain.latent_kernels, self._updates + 1, precision)
        return place(self._strategy, view)

    def _report(
        self, parts: Parts, before: State, after: State, info: Info, seconds: float
    ) -> UpdateReport:
        ends = np.cumsum([len(y) for _, y in parts.values()])
        scores = np.asarray(info.log_predictive)[: ends[-1]]
        rows = dict(zip(parts, np.split(scores, ends[:-1]), strict=True))
        sizes = tuple(len(p) for p in _points(after))
        return UpdateReport(
            update=self._updates + 1,
            observations={name: len(y) for name, (_, y) in parts.items()},
            log_predictive={name: float(np.mean(row)) for name, row in rows.items()},
            log_predictive_rows=rows,
            bound=float(info.bound),
            inducing_before=tuple(len(p) for p in _points(before)),
            inducing_after=sizes,
            hyperparameters=setup.describe(after.model, self.channels),
            e_rounds=int(info.e_rounds),
            m_evaluations=int(info.m_evaluations),
            seconds=seconds,
            result=f"learned with {'+'.join(map(str, sizes))} inducing points",
        )

    # -- predicting ----------------------------------------------------------------------------

    @double_precision
    def predict(self, x: Any, channel: str | None = None) -> Any:
        """What one channel will show at `x`, as a `Prediction`.

        With several channels and no name, a dictionary of predictions, one a channel.
        """
        if channel is None and len(self.channels) > 1:
            return {name: self.predict(x, name) for name in self.channels}
        name = self.channels[0] if channel is None else channel
        if not isinstance(name, str) or name not in self._seen:
            raise DataError(
                problem(f"a channel among {list(self.channels)}", repr(name), "Check the name.")
            )
        if self._state is None:
            raise DataError(
                problem("a model with data", "one without", "Call `update` before `predict`.")
            )
        rows = arrays.inputs(x, self._state.inducing.points.shape[-1], "the prediction")
        index = self.channels.index(name)
        likelihood = paramax.unwrap(self._state.model.channels[index].likelihood)
        mean, covariance = self._latents(rows, index)
        j = likelihood.latents
        return Prediction(likelihood, mean[:, :j], covariance[:, :j, :j])

    def _latents(self, x: Float[np.ndarray, "N P"], index: int) -> tuple[np.ndarray, np.ndarray]:
        """Latent moments at any number of inputs, in chunks of bounded size."""
        assert self._state is not None
        means, covariances = [], []
        for begin in range(0, max(len(x), 1), _PREDICT_ROWS):
            chunk = x[begin : begin + _PREDICT_ROWS]
            padded = np.zeros((row_bucket(len(chunk)), x.shape[1]))
            padded[: len(chunk)] = chunk
            channel = jnp.full(len(padded), index)
            mean, covariance = _predict(self._learner, self._state, jnp.asarray(padded), channel)
            means.append(np.asarray(mean)[: len(chunk)])
            covariances.append(np.asarray(covariance)[: len(chunk)])
        return np.concatenate(means), np.concatenate(covariances)


def _points(state: State) -> tuple[Float[np.ndarray, "_ P"], ...]:
    points, mask = np.asarray(state.inducing.points), np.asarray(state.inducing.mask)
    return tuple(p[m] for p, m in zip(points, mask, strict=True))


def _suffice(points: tuple, wanted: tuple) -> bool:
    """Whether points placed under the old kernels still do: not too few, nor far too many."""
    pairs = [(len(p), len(w)) for p, w in zip(points, wanted, strict=True)]
    return all(0.75 * have <= want <= have for have, want in pairs)


def _finite(state: State) -> bool:
    leaves = jax.tree.leaves(eqx.filter(state, eqx.is_inexact_array))
    return all(np.isfinite(leaf).all() for leaf in leaves)
