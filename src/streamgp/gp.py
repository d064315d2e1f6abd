"""ContinualGP: the class that users work with. It checks data, calls the parts, keeps results."""

import dataclasses
import logging
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from streamgp import persistence, plot
from streamgp.data.axes import Axis, input_names
from streamgp.data.epochs import epochs
from streamgp.data.horizons import inputs_ahead
from streamgp.data.reader import Intake, Layout, gather, gather_in_order
from streamgp.errors import (
    BudgetWarning,
    ConfigurationError,
    DataError,
    EpochWarning,
    FileError,
    problem,
)
from streamgp.inducing import AbstractStrategy, as_strategy
from streamgp.inducing.engines import AUTO, Engines
from streamgp.inference.dense.state import DenseState
from streamgp.inference.engine import AnyLearner
from streamgp.inference.over_time.state import RowState
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.resolution import points_for
from streamgp.inference.sparse.state import State
from streamgp.inference.vem import VEM
from streamgp.likelihoods import Likelihood
from streamgp.model.means import Constant, Mean, as_seasons
from streamgp.model.specification import Latents, Specification
from streamgp.model.summary import describe, mean_weights, table
from streamgp.numerics.blas_threads import on_one_blas_thread
from streamgp.online import lifecycle
from streamgp.online.batch_update import Updater
from streamgp.online.forgetting import Forgetting
from streamgp.online.outliers import Rule
from streamgp.online.progress import Progress
from streamgp.online.progress_bar import progress_bar
from streamgp.online.report import UpdateReport, held, percent
from streamgp.online.sample_stream import Streamer
from streamgp.parameters import Parameter, replaced
from streamgp.prediction.predictor import Predictor

_log = logging.getLogger(__name__)


class _Version(NamedTuple):
    """The model's settings and what it has learned so far. A change replaces both at once."""

    updater: Updater
    progress: Progress


class ContinualGP(plot.Drawn):
    """A multi-task Gaussian process that learns a stream batch by batch, each batch once.

    One model may be used from several threads. Updates wait for each other; predictions never wait
    and see the model as the last finished update left it.

    Args:
        channels: A likelihood, for a single channel, or a dictionary of them by name.
        latents: How many latent functions the channels share, or a kernel, or a list of kernels;
            `(kernel, n)` stands for n functions drawn from one kernel. By default there is one per
            latent parameter (a `Gaussian` channel has one), at most three. If no kernel is given,
            it is `kernels.over_time` over one input, the sum of a fast, a medium and a slow part,
            and otherwise, or on the dense engine, a smooth one (`RBF`).
        inducing: Where inducing points go: `Adaptive`, `Growing`, `KMeans`, `Fixed`, a function of
            a `View`, one of them `Refined`, or a class of your own derived from `AbstractStrategy`.
            The model then keeps no observations. None: it keeps rows, and needs no points.
        learning: `VEM`, or None to leave all hyperparameters where they start.
        mixing: Mixing weights (J, Q) of some channels to start from, or `fixed` ones.
        forgetting: A number below 1, for data that drift: the part of what is known about the past
            that is left after each update. Or a `Forgetting`, which counts by input instead.
        scale: Where kernels and channels start from. True: from the first batch. False: inputs and
            f as they are, about 0 and of size 1. Or a dictionary of (centre, scale) by name, of
            channels with real values and of the `"inputs"`; the rest from the first batch.
        mean: The mean functions of all channels, or a dictionary of them by channel. By default
            every channel has a level of its own, which is learned. None: levels stay at the mean of
            each channel's first data.
        seasons: Periods, such as `["1D", "7D"]`, or `Seasonal`s: each is added to the mean of every
            channel.
        weight_uncertainty: Whether predictions include the uncertainty of mixing weights.
        engine: How the past is kept. "chain": as rows over time that a filter reads, for one input
            and Markov kernels (Matérn, Periodic, SHO, CARMA, Linear, Constant, sums and products of
            them). "dense": as rows over any inputs, for any kernel. "sparse": as values at inducing
            points; no row is kept. "auto": "sparse" if `inducing` or keep=0 asks for it, else a
            chain where that is possible, else "dense".
        keep: How many observations are kept, of all channels together. What a model knows of the
            past is computed from them, and everything can be learned again. Beyond a quarter more,
            observations are joined where that loses least. "auto": 20,000 over time, 512 to 1,024
            otherwise. None: all are kept. 0: none are, and the past is what inducing points know of
            it.
        outliers: What becomes of observations far outside what was predicted. "keep": they are
            learned as they are. "skip": they are left out. "downweight": they count the less the
            further out they are. Reports say how many there were in any case.
        seed: Of the random start of the mixing weights.

    Attributes:
        notes: A dictionary of yours (numbers, text, lists) that is saved with the model.

    Raises:
        ConfigurationError: If the settings contradict each other.

    Examples:
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
        latents: Latents | None = None,
        inducing: AbstractStrategy | Any = None,
        learning: VEM | None = VEM(),  # noqa: B008 (frozen)
        mixing: Mapping[str, Parameter] | None = None,
        forgetting: float | Forgetting = 1.0,
        scale: bool | Mapping[str, tuple[Any, Any]] = True,
        mean: Mean | Mapping[str, Mean | None] | None = Constant(),  # noqa: B008 (frozen)
        seasons: Any = (),
        weight_uncertainty: bool = True,
        engine: str = "auto",
        keep: int | str | None = AUTO,
        outliers: Rule = "keep",
        seed: int = 0,
    ):
        named = dict(channels) if isinstance(channels, Mapping) else {"y": channels}
        weights = dict(mixing or {})
        learner = Learner(learning, weight_uncertainty=bool(weight_uncertainty))
        rule = forgetting if isinstance(forgetting, Forgetting) else Forgetting(forgetting)
        strategy = None if inducing is None else as_strategy(inducing)
        engines = Engines(engine, strategy, learner, keep)
        specification = Specification(
            named,
            latents,
            weights,
            seed,
            scale,
            mean=mean,
            seasons=as_seasons(seasons),
            over_time=engines.allows_chain,
        )
        updater = Updater(specification, engines, rule, outliers)
        self._set_up(_Version(updater, Progress(dict.fromkeys(named, 0))), {}, {})

    def _set_up(
        self, version: _Version, notes: dict[str, Any], bookkeeping: dict[str, Any]
    ) -> None:
        self._version = version
        self.notes: dict[str, Any] = notes
        self._bookkeeping = bookkeeping  # of a program that feeds the model, saved with it
        self._lock = threading.RLock()
        self._warned = False  # of the budget

    @classmethod
    def _begun(cls, updater: Updater, progress: Progress) -> "ContinualGP":
        model = cls.__new__(cls)
        model._set_up(_Version(updater, progress), {}, {})
        return model

    @classmethod
    def _of(cls, contents: persistence.Contents) -> "ContinualGP":
        model = cls.__new__(cls)
        version = _Version(contents.updater, contents.progress)
        model._set_up(version, contents.notes, contents.bookkeeping)
        return model

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # -- what the model is -------------------------------------------------------------------

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels, in order."""
        return self._specification.names

    @property
    def likelihoods(self) -> dict[str, Likelihood]:
        """The likelihood of each channel, as it was given."""
        return dict(self._specification.channels)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the input columns, as they first came."""
        return input_names(self.axes)

    @property
    def observations(self) -> dict[str, int]:
        """How many observations each channel has given so far."""
        _, progress = self._version
        return {name: progress.seen[name] for name in self.channels}

    @property
    def kept_rows(self) -> int:
        """How many rows of the past are kept; none at inducing points."""
        return 0 if self.state is None else self.state.kept_rows

    @property
    def inducing_points(self) -> tuple[Float[np.ndarray, "_ P"], ...]:
        """The inducing points of each latent function, or the inputs of kept rows."""
        return () if self.state is None else self.state.points

    @property
    def open_variance(self) -> tuple[float, ...]:
        """The part of each latent function's variance at past rows that its points leave open.

        Rows count by how precisely they observe the function. What a row leaves open is computed
        when it is learned; a kernel that is learned later does not change it.
        """
        return () if self.state is None else tuple(map(float, self.state.open_variance))

    @property
    def shortest_waves(self) -> tuple[float, ...]:
        """The length of the shortest wave of a season or a periodic kernel along each input.

        A season has waves as short as its period over its harmonics. The length is infinite where
        nothing repeats. Pictures are drawn finely enough for these waves.
        """
        state = self.state
        return () if state is None else tuple(state.plain.shortest_waves(len(self.axes)).tolist())

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What each input column is; `axis.values(points)` turns the model's numbers into times."""
        return self._version.progress.schema.axes

    @property
    def latest(self) -> Any:
        """The largest first input so far, a time if inputs are times; None before any data."""
        progress = self._version.progress
        if not progress.schema.axes:
            return None
        return progress.schema.axes[0].values(np.array([progress.latest]))[0]

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Kernel parameters of each latent function; weights and parameters of each channel."""
        updater, progress = self._version
        if progress.state is None:
            return {}
        return describe(progress.state.model, updater.specification.names, progress.schema.axes)

    @property
    def mean_weights(self) -> dict[str, dict[str, Float[np.ndarray, "..."]]]:
        """What is known of each channel's mean.

        `offset` is where it started, one number per latent parameter. `weights` are the expected
        weights of its mean functions, (J, B). With the default mean, the level is their sum.
        """
        updater, progress = self._version
        state = progress.state
        if state is None:
            return {}
        return mean_weights(state.plain, updater.specification.names, state.mean_weights)

    @property
    def state(self) -> State | DenseState | RowState | None:
        """The functional core's state, for use with `Learner`; None before the first update."""
        return self._version.progress.state

    @property
    def learner(self) -> AnyLearner:
        """The functional core that this model's updates call."""
        updater, progress = self._version
        engines = updater.engines
        return engines.settings if progress.state is None else engines.of(progress.state).learner

    @property
    def engine(self) -> str | None:
        """How the past is kept, "chain", "dense" or "sparse"; None before the first update."""
        updater, progress = self._version
        return None if progress.state is None else updater.engines.of(progress.state).name

    @property
    def _specification(self) -> Specification:
        return self._version.updater.specification

    def __repr__(self) -> str:
        families = ", ".join(f"{n}: {type(c).__name__}" for n, c in self.likelihoods.items())
        progress = self._version.progress
        return (
            f"<ContinualGP {{{families}}}; {progress.updates} updates, "
            f"{progress.total} observations, {self._held}>"
        )

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        about = f"ContinualGP: {self._version.progress.updates} updates, {self._held}"
        return table(about, self.likelihoods, self.observations)

    @property
    def _held(self) -> str:
        state = self.state
        return held(0, ()) if state is None else held(state.kept_rows, state.sizes)

    # -- learning ------------------------------------------------------------------------------

    @on_one_blas_thread
    def update(
        self,
        data: Any,
        y: Any = None,
        *,
        inputs: Any = None,
        channel: Any = None,
        value: Any = None,
        columns: Any = None,
        learn: bool = True,
    ) -> UpdateReport:
        """Learn a batch. It is not needed again.

        Call it as `update(x, y)` where there is a single channel, or as `update({name: (x, y), …})`
        with any subset of the channels and any number of observations of each. Or with a pandas or
        polars frame, in which a missing value was not observed: `update(frame, inputs="date")`,
        where every other column is a channel, or, if it is long,
        `update(frame, inputs="date", channel="sensor", value="reading")`.

        Where a likelihood takes several numbers per observation (`likelihood.columns`, such as a
        count and its exposure), observations are an array (N, C) or a dictionary of columns. In a
        wide frame they are the columns `visits` and `visits_exposure`, for a channel `visits`.

        Args:
            data: Inputs, a dictionary of (inputs, observations) by channel, or a frame. Inputs may
                be numbers or times.
            y: Observations of the single channel. Classes may have labels.
            inputs: The input column of a frame, or a list of them; by default its index.
            channel: The column with the channels' names, if a frame is long.
            value: The column with the values, if a frame is long; a list of columns where
                observations are several numbers.
            columns: Columns of a wide frame that are not called as usual, as a list of names by
                channel: `columns={"visits": ["n", "hours"]}`.
            learn: Whether hyperparameters may be learned too. Everything else is always learned.

        Returns:
            What the update did.

        Raises:
            DataError: If the data cannot be used. The model is then as it was.
            ConfigurationError: If the rows are too far apart for a season.
        """
        layout = Layout(inputs, channel, value, columns)
        with self._changing() as (updater, progress):
            channels, schema = updater.specification.channels, progress.schema
            intake = gather(data, y, layout, channels, schema)
            if intake.rows is None:
                return self._passed_over(intake)
            self._note_epochs(intake)
            start = replaced(progress, schema=intake.schema)
            return self._keep(updater.update(start, intake.rows, learn=learn), intake)

    @on_one_blas_thread
    def update_many(
        self,
        x: Any,
        y: Any = None,
        channel: Any = None,
        *,
        inputs: Any = None,
        value: Any = None,
        columns: Any = None,
        learn: bool = True,
        progress: bool = False,
    ) -> UpdateReport:
        """Learn samples one at a time, in order, at a fraction of the cost of that many updates.

        The model ends as if each sample had been an `update` of its own, except that points are
        placed for a stretch of inputs at a time. If a sample fails, the model is as it was before
        all of them.

        Args:
            x: Inputs, or a frame as in `update`, which is taken row by row.
            y: Observations, one per input.
            channel: The channel's name of each sample, where there are several channels. Of a long
                frame, the column that has it.
            inputs: The input column of a frame, or a list of them; by default its index.
            value: The column with the values, if a frame is long; a list of columns where
                observations are several numbers.
            columns: Columns of a wide frame that are not called as usual, as in `update`.
            learn: Whether hyperparameters may be learned. Without it they stay as they are, which
                is fastest.
            progress: Whether to show a progress bar.

        Returns:
            What the samples did together; `log_predictive_rows` has one prequential score per
            sample.

        Raises:
            DataError: If the data cannot be used.
            ConfigurationError: If the rows are too far apart for a season.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Gaussian())
            >>> t = np.linspace(0, 10, 200)
            >>> report = model.update_many(t, np.sin(t))
            >>> report.log_predictive_rows["y"].shape
            (200,)
        """
        layout = Layout(inputs, channel, value, columns)
        with self._changing() as (updater, now):
            intake = gather_in_order(x, y, layout, updater.specification.channels, now.schema)
            if intake.rows is None:
                return self._passed_over(intake)
            self._note_epochs(intake)
            start, rows = replaced(now, schema=intake.schema), intake.rows
            with progress_bar(rows.size, "samples", shown=progress) as advance:
                streamer = Streamer(updater, learn)
                return self._keep(streamer.stream(start, rows, advance), intake)

    @on_one_blas_thread
    def refine(self) -> UpdateReport:
        """Learn hyperparameters from what is kept of the past, without new data.

        One large batch is learned in few steps; some calls of `refine` after it bring the model
        nearer to the best one for that batch.

        Returns:
            What it did.

        Raises:
            ConfigurationError: If the model has no data or does not learn.
        """
        with self._changing() as (updater, progress):
            if progress.state is None or updater.engines.settings.learning is None:
                raise ConfigurationError(
                    problem(
                        "a model that has data and learns",
                        repr(self),
                        "Call `update` first, and leave `learning` on.",
                    )
                )
            return self._keep(updater.refine(progress))

    @on_one_blas_thread
    def add_channel(
        self, name: str, likelihood: Likelihood, *, weights: Parameter | None = None
    ) -> None:
        """Add a channel, at any time. Until it has data, its predictions are the prior's.

        Args:
            name: Of the new channel.
            likelihood: Of the new channel.
            weights: Mixing weights (J, Q) to start from, or `fixed` ones.

        Raises:
            ConfigurationError: If the name exists, or the weights have another shape.
        """
        with self._changing() as (updater, progress):
            begun = progress.state is not None
            wider = updater.specification.with_channel(name, likelihood, weights, begun=begun)
            state = progress.state
            if state is not None:
                state = lifecycle.add_channel(wider, state, progress.schema.axes)
            self._version = _Version(
                dataclasses.replace(updater, specification=wider),
                dataclasses.replace(progress, state=state, seen={**progress.seen, name: 0}),
            )

    @on_one_blas_thread
    def compact(self) -> None:
        """Keep no observations from now on: what kept ones have said moves to inducing points.

        Hyperparameters that are learned later no longer see them. Predictions stay about the same,
        as far as `budget` points can tell what the rows did (`Adaptive`). A file of the model then
        holds no row. It is as if the model had been made with keep=0.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Gaussian())
            >>> x = np.linspace(0, 6, 60)
            >>> report = model.update(x, np.sin(x))
            >>> model.compact()
            >>> model.kept_rows
            0
        """
        with self._changing() as (updater, progress):
            if progress.state is None:
                engines = dataclasses.replace(updater.engines, keep=0)
            else:
                engines, state = updater.engines.without_rows(progress.state)
                progress = dataclasses.replace(progress, state=state)
            self._version = _Version(dataclasses.replace(updater, engines=engines), progress)

    @contextmanager
    def _changing(self) -> Iterator[_Version]:
        """The model as it is, while no other thread changes it."""
        with self._lock:
            yield self._version

    def _keep(
        self, result: tuple[Progress, UpdateReport], intake: Intake | None = None
    ) -> UpdateReport:
        """Take the result of learning as the model's own."""
        progress, report = result
        self._version = self._version._replace(progress=progress)
        if intake is not None and intake.dropped:
            report = dataclasses.replace(report, dropped=intake.dropped)
        left = max(report.open_variance) if report.budget_spent else 0.0
        if left >= _COARSE and not self._warned:
            self._warned = True
            warnings.warn(_TIGHT.format(left=percent(left)), BudgetWarning, stacklevel=4)
        _log.info("%s", report)
        return report

    def _note_epochs(self, intake: Intake) -> None:
        """Warn if the first inputs of all are numbers that look like times."""
        if intake.rows is not None and not self.axes:
            sentence = epochs(intake.rows.x, intake.schema.axes)
            if sentence is not None:
                warnings.warn(sentence, EpochWarning, stacklevel=4)

    def _passed_over(self, intake: Intake) -> UpdateReport:
        updater, progress = self._version
        report = dataclasses.replace(updater.pass_over(progress), dropped=intake.dropped)
        _log.info("%s", report)
        return report

    # -- resolution ----------------------------------------------------------------------------

    @on_one_blas_thread
    def suggest_budget(self, tolerance: float = 0.01) -> int:
        """About how many inducing points would leave at most this part of the past's variance open.

        It is a guess from the kernels and from the inputs that the present points cover. If the
        points are enough, the answer is at most their number. It is for data like those so far: a
        stream that goes on to new inputs needs more.

        Args:
            tolerance: The part of the variance at past rows that may stay open (see
                `open_variance`).

        Returns:
            A number of points per latent function, for `budget`. It is at most 16 times the present
            number; ask again once a model has that many.

        Raises:
            ConfigurationError: If the tolerance is not between 0 and 1.
            DataError: If the model has no data.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> x = np.linspace(0, 60, 600)
            >>> roomy = sgp.ContinualGP(sgp.Gaussian(), inducing=sgp.Adaptive(budget=200))
            >>> report = roomy.update(x, np.sin(x))
            >>> roomy.suggest_budget() <= report.inducing_after[0]
            True
        """
        if not 0 < tolerance < 1:
            raise ConfigurationError(
                problem(
                    "a tolerance between 0 and 1",
                    f"{tolerance}",
                    "The default, 0.01, suits most streams.",
                )
            )
        state = self.state
        if state is None:
            raise DataError(
                problem(
                    "a model with data", "one without", "Call `update` before `suggest_budget`."
                )
            )
        return points_for(state, tolerance) if isinstance(state, State) else max(state.sizes)

    # -- predicting ----------------------------------------------------------------------------

    @on_one_blas_thread
    def predict(self, x: Any, channel: str | None = None) -> Any:
        """Predict observations of channels at some inputs.

        Args:
            x: An array, a list, a series or an index, of numbers or times as in `update`, or a
                frame with the input columns.
            channel: The name of one channel; by default all of them.

        Returns:
            A `Prediction`; with several channels and no name, `Predictions`: a dictionary of them.

        Raises:
            DataError: If the model has no data, or the inputs cannot be used.
        """
        updater, progress = self._version
        if progress.state is None:
            raise DataError(
                problem("a model with data", "one without", "Call `update` before `predict`.")
            )
        names = updater.specification.names
        learner = updater.engines.of(progress.state).learner
        tracked = progress.tracked()
        predictor = Predictor(learner, progress.state, names, progress.schema, tracked)
        return predictor.predict(x, channel)

    def forecast(self, ahead: Any, every: Any, channel: str | None = None) -> Any:
        """Predict observations of channels after the latest input so far, at equal steps.

        Args:
            ahead: A number of steps (an integer), or how far to go: a duration such as "2D" if
                inputs are times, a floating-point number in their units otherwise.
            every: The length of a step: a duration such as "1h", or a number in the units of the
                inputs (days, for times).
            channel: The name of one channel; by default all of them.

        Returns:
            As `predict`: a `Prediction`, or `Predictions` of all channels.

        Raises:
            DataError: If the model has no data.
            ConfigurationError: If inputs have several columns, or a length makes no sense for them.

        Examples:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Gaussian(), seasons=[12])
            >>> month = np.arange(60.0)
            >>> report = model.update(month, 10 + np.sin(2 * np.pi * month / 12))
            >>> model.forecast(12, every=1).x
            array([60., 61., 62., 63., 64., 65., 66., 67., 68., 69., 70., 71.])
        """
        progress = self._version.progress
        if progress.state is None:
            raise DataError(
                problem("a model with data", "one without", "Call `update` before `forecast`.")
            )
        axes = progress.schema.axes
        if len(axes) != 1:
            raise ConfigurationError(
                problem(
                    "one input column, which the forecast follows",
                    f"{len(axes)}",
                    "Pass all inputs of the future to `predict`.",
                )
            )
        numbers = inputs_ahead(axes[0], progress.latest, ahead, every)
        return self.predict(axes[0].values(numbers[:, 0]), channel)

    # -- keeping -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, for `streamgp.load`.

        What is there is replaced as a whole, or, if anything goes wrong, not at all. The file has
        what the model knows, how it was set up and its `notes`. It has the kept rows, which are
        observations; a model with keep=0 has none (`compact`).

        Args:
            path: Of the file.

        Raises:
            FileError: If a part of the model cannot be written.
            OSError: If the folder does not exist or may not be written to.
        """
        persistence.write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The model as bytes, for `streamgp.from_bytes`; equal models give equal bytes.

        Returns:
            The same bytes that `save` writes.

        Examples:
            >>> import streamgp as sgp
            >>> model = sgp.ContinualGP({"load": sgp.Gamma(), "failures": sgp.Poisson()})
            >>> sgp.from_bytes(model.to_bytes()).channels
            ('load', 'failures')
        """
        return persistence.pack(*self._version, self.notes, self._bookkeeping)


_COARSE = 1e-3  # an open part of the variance at past rows that is worth a warning
_TIGHT = (
    "the budget of inducing points is spent: points are dropped for new ones, and the past is held "
    "less finely than before. They leave {left} of the variance at past rows open. Raise `budget` "
    "to keep more; `model.suggest_budget()` says how far. (This is said once per model; "
    "`report.budget_spent` and `report.open_variance` say it at every update.)"
)


def load(path: str | os.PathLike[str]) -> ContinualGP:
    """The model that `ContinualGP.save` wrote, ready to go on with its stream.

    Nothing in the file is run.

    Args:
        path: Of the file.

    Returns:
        The model.

    Raises:
        FileError: If the file is damaged, not a model's, or of a newer format.
        OSError: If the file is missing or forbidden.

    Examples:
        >>> import tempfile, numpy as np, streamgp as sgp
        >>> model = sgp.ContinualGP(sgp.Gaussian(), learning=None)
        >>> report = model.update(np.arange(5.0), np.zeros(5))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/patient.sgp")
        ...     again = sgp.load(f"{folder}/patient.sgp")
        >>> again.observations
        {'y': 5}
    """
    return from_bytes(persistence.read(path))


def from_bytes(data: bytes | bytearray | memoryview) -> ContinualGP:
    """The model that `ContinualGP.to_bytes` gave, ready to go on with its stream.

    Args:
        data: The bytes.

    Returns:
        The model.

    Raises:
        FileError: If the bytes are not those of a model.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise FileError(
            problem("bytes", f"a {type(data).__name__}", "Use `streamgp.load` for a path.")
        )
    return ContinualGP._of(persistence.unpack(bytes(data)))
