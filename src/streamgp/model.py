"""ContinualGP: the object people hold. It checks what comes, and keeps the progress it is told."""

import dataclasses
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from tinygp.kernels import Kernel

from streamgp import files, plot, setup
from streamgp.data.axes import Axis, input_names
from streamgp.display import progress_bar
from streamgp.errors import ConfigurationError, DataError, problem
from streamgp.forgetting import Forgetting
from streamgp.inducing import Adaptive, Strategy
from streamgp.inference.carry import Carry, Projection
from streamgp.intake import Layout, gather, gather_in_order
from streamgp.learner import VEM, Learner, State
from streamgp.likelihoods import Likelihood
from streamgp.parameters import Parameter
from streamgp.placing import Placer, points_of
from streamgp.precision import double_precision
from streamgp.predicting import Predictor
from streamgp.progress import Progress
from streamgp.reading import Intake
from streamgp.report import UpdateReport
from streamgp.streaming import Streamer
from streamgp.updating import Updater

_log = logging.getLogger(__name__)


class ContinualGP:
    """A multi-task Gaussian process that learns from a stream and keeps none of it.

    Args:
        channels: a likelihood, for a single channel, or a dictionary of them by name.
        latents: how many latent functions the channels share, or their kernels; `(kernel, n)`
            stands for n functions drawn from one kernel. By default one for a single channel
            with one latent parameter, else one a latent parameter, at most three.
        inducing: a placement strategy: `Adaptive`, `Growing`, `KMeans`, `Fixed`, a function of a
            `View`, or one of them `Refined`.
        learning: `VEM`, or None to leave all hyperparameters where they start.
        mixing: mixing weights (J, Q) of some channels to start from, or `fixed` ones.
        forgetting: below 1, the share of what the past said that is left after each update, for
            worlds that drift; or a `Forgetting` that counts by input instead.
        factorised: keep a posterior per latent function instead of a joint one: cheaper for many
            latents, blind to their posterior correlation.
        carry: the rule for dropped inducing points: `Projection` or `Marginals`.
        scale: where kernels and channels start from. True: from the first batch. False: inputs and
            f as they are, about 0 and of size 1. Or a dictionary of (centre, scale) by name, of
            channels with real values and of the `"inputs"`; the rest from the first batch.
        batch_rows: rows held in memory together; a larger batch is folded in by random parts.
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
        forgetting: float | Forgetting = 1.0,
        factorised: bool = False,
        carry: Carry = Projection(),  # noqa: B008 (frozen)
        batch_rows: int = 8192,
        scale: bool | Mapping[str, tuple[Any, Any]] = True,
        seed: int = 0,
    ):
        named = dict(channels) if isinstance(channels, Mapping) else {"y": channels}
        self._setup = setup.Setup(named, latents, mixing or {}, seed, scale)
        learner = Learner(learning, carry, factorised)
        rule = forgetting if isinstance(forgetting, Forgetting) else Forgetting(forgetting)
        self._updater = Updater(self._setup, Placer(inducing, learner), learner, rule, batch_rows)
        self._progress = Progress(dict.fromkeys(named, 0))
        self.notes: dict[str, Any] = {}  # the user's own, kept in the file

    @classmethod
    def _of(cls, updater: Updater, progress: Progress, notes: dict[str, Any]) -> "ContinualGP":
        model = cls.__new__(cls)
        model._setup, model._updater, model._progress = updater.setup, updater, progress
        model.notes = notes
        return model

    # -- what the model is -------------------------------------------------------------------

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the channels, in order."""
        return self._progress.channels

    @property
    def likelihoods(self) -> dict[str, Likelihood]:
        """The likelihood of each channel, as it was given."""
        return dict(self._setup.channels)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the input columns, as they first came."""
        return input_names(self.axes)

    @property
    def observations(self) -> dict[str, int]:
        """How many observations each channel has given so far."""
        return dict(self._progress.seen)

    @property
    def inducing_points(self) -> tuple[Float[np.ndarray, "_ P"], ...]:
        """The inducing points of each latent function."""
        return () if self.state is None else points_of(self.state)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What each input column is; `axis.values(points)` turns the model's numbers into times."""
        return self._progress.schema.axes

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Kernel parameters of each latent function; weights and parameters of each channel."""
        if self.state is None:
            return {}
        return setup.describe(self.state.model, self.channels, self.axes)

    @property
    def state(self) -> State | None:
        """The functional core's state, for use with `Learner`; None before the first update."""
        return self._progress.state

    @property
    def learner(self) -> Learner:
        return self._updater.learner

    def __repr__(self) -> str:
        families = ", ".join(f"{n}: {type(c).__name__}" for n, c in self._setup.channels.items())
        sizes = "+".join(str(len(points)) for points in self.inducing_points) or "no"
        return (
            f"<ContinualGP {{{families}}}; {self._progress.updates} updates, "
            f"{self._progress.total} observations, {sizes} inducing points>"
        )

    # -- learning ------------------------------------------------------------------------------

    @double_precision
    def update(
        self,
        data: Any,
        y: Any = None,
        *,
        inputs: Any = None,
        channel: Any = None,
        value: Any = None,
        learn: bool = True,
    ) -> UpdateReport:
        """Fold a batch in and let go of it.

        Call it as `update(x, y)` where there is a single channel, or
        `update({name: (x, y), …})` with any subset of the channels and any number of
        observations of each. Or with a pandas or polars frame: `update(frame, inputs="date")`,
        where every other column is a channel and a missing value was not observed; or a long one,
        `update(frame, inputs="date", channel="sensor", value="reading")`. Inputs may be times,
        classes may have labels. Without `learn` hyperparameters stay as they are, and all else is
        learned. If anything is wrong with the data an error says what, and the model is as it was.
        """
        layout = Layout(inputs, channel, value)
        intake = gather(data, y, layout, self._setup.channels, self._progress.schema)
        start, rows = self._aware(intake), intake.rows
        return self._keep(self._updater.update(start, rows, learn=learn), intake)

    @double_precision
    def update_many(
        self,
        x: Any,
        y: Any = None,
        channel: Any = None,
        *,
        inputs: Any = None,
        value: Any = None,
        ahead: bool = True,
        learn: bool = True,
        progress: bool = False,
    ) -> UpdateReport:
        """Fold samples in one at a time, in order, at a fraction of the cost of that many updates.

        `channel` names the channel of each sample where there are several. Frames are as in
        `update`, row by row. The report's `log_predictive_rows` have one prequential score a
        sample. The model ends as if each sample had been an `update` of its own, but that points
        are placed for a stretch of inputs at a time; without `ahead` that is so of the points too,
        and slower where there are new ones. Without `learn` hyperparameters stay as they are, which
        is fastest. If a sample fails, the model is as it was before them all.

        Example:
            >>> import numpy as np, streamgp as sgp
            >>> model = sgp.ContinualGP(sgp.Gaussian())
            >>> t = np.linspace(0, 10, 200)
            >>> report = model.update_many(t, np.sin(t))
            >>> report.log_predictive_rows["y"].shape
            (200,)
        """
        layout = Layout(inputs, channel, value)
        intake = gather_in_order(x, y, layout, self._setup.channels, self._progress.schema)
        start, rows = self._aware(intake), intake.rows
        with progress_bar(rows.size, "samples", shown=progress) as advance:
            return self._keep(
                Streamer(self._updater, ahead, learn).stream(start, rows, advance), intake
            )

    @double_precision
    def refine(self) -> UpdateReport:
        """Learn hyperparameters from what has been carried so far, without data."""
        if self.state is None or self.learner.learning is None:
            raise ConfigurationError(
                problem(
                    "a model that has data and learns",
                    repr(self),
                    "Call `update` first, and leave `learning` on.",
                )
            )
        return self._keep(self._updater.refine(self._progress))

    @double_precision
    def add_channel(
        self, name: str, likelihood: Likelihood, *, weights: Parameter | None = None
    ) -> None:
        """A new channel, at any time. Until it has data, its predictions are the prior's."""
        if name in self.channels:
            raise ConfigurationError(
                problem("a new channel name", f"{name!r}, which exists", "Choose another name.")
            )
        state = self._setup.add(self.state, name, likelihood, weights)
        seen = {**self._progress.seen, name: 0}
        self._progress = dataclasses.replace(self._progress, state=state, seen=seen)

    def _aware(self, intake: Intake) -> Progress:
        """The progress so far, with the form of new data."""
        return dataclasses.replace(self._progress, schema=intake.schema)

    def _keep(
        self, result: tuple[Progress, UpdateReport], intake: Intake | None = None
    ) -> UpdateReport:
        """The one place where the model changes."""
        self._progress, report = result
        if intake is not None and intake.dropped:
            report = dataclasses.replace(report, dropped=intake.dropped)
        _log.info("%s", report)
        return report

    # -- predicting ----------------------------------------------------------------------------

    @double_precision
    def predict(self, x: Any, channel: str | None = None) -> Any:
        """What one channel will show at `x`, as a `Prediction`; with several channels and no name,
        `Predictions`: a dictionary of them, one a channel.

        `x` may be an array, a list, a series or an index, of numbers or times as in `update`, or a
        frame with the input columns.
        """
        if self.state is None:
            raise DataError(
                problem("a model with data", "one without", "Call `update` before `predict`.")
            )
        predictor = Predictor(self.learner, self.state, self.channels, self._progress.schema)
        return predictor.predict(x, channel)

    def plot(self, channel: str | None = None, **options: Any) -> Any:
        """Draw a channel over one or two inputs; needs matplotlib, and returns the axes.

        With several channels and no name, all of them, each on axes of its own. The options are
        those of `streamgp.plot.channel`: `x`, `data`, `past`, `level`, `value`, `inducing`, `ax`.
        """
        if channel is None and len(self.channels) > 1:
            return plot.channels(self, **options)
        return plot.channel(self, channel, **options)

    # -- keeping -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, for `streamgp.load`.

        What is there is replaced as a whole, or, if anything goes wrong, not at all. The file
        has what the model knows and how it was set up, its `notes` (a dictionary of yours:
        numbers, text, lists), and no data.
        """
        files.write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The model as bytes, for `streamgp.from_bytes`; equal models give equal bytes.

        Example:
            >>> import streamgp as sgp
            >>> model = sgp.ContinualGP({"load": sgp.Gamma(), "failures": sgp.Poisson()})
            >>> sgp.from_bytes(model.to_bytes()).channels
            ('load', 'failures')
        """
        return files.pack(self._updater, self._progress, self.notes)
