"""Schedule: when hyperparameters are learned. Every rule about that is in this file.

They are learned from a batch when enough observations have come since the last time, unless the
caller said not to, the data have shown one value only, or the world is changing under a model that
forgets.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping

from streamgp.data.batch import Rows
from streamgp.inference.vem import VEM
from streamgp.likelihoods import Likelihood
from streamgp.online.doubt import Doubt
from streamgp.online.forgetting import Forgetting
from streamgp.online.progress import Progress

_CALM = 2.0  # surprise up to which hyperparameters are learned from a world that fades
_GROWTH = 1.5  # of the data, or of a large batch, between two M steps that take their time
_APART = 50  # the part of all observations that comes between two M steps is one over this,
_SEVERAL = 5000  # as long as there are no more; from then on it grows with the root of their number
_FARTHEST = 10  # up to one over this
_OFTEN = 10  # such M steps come that many times as often as `every` says
_ANEW = 2.0  # growth of the data between two times that learning begins anew


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The rules of one model.

    Attributes:
        rule: How hyperparameters are learned, or None if never.
        forgetting: How the past fades.
        channels: The likelihood of each channel, by name.
        on_rows: Whether hyperparameters are learned from rows, old ones and new ones.
        growth: Of the data between two M steps on rows, once there are some.
        brief: How many evaluations of the bound an M step gets that goes on from a recent one.
    """

    rule: VEM | None
    forgetting: Forgetting
    channels: Mapping[str, Likelihood]
    on_rows: bool = False
    growth: float = 1.0
    brief: int = 4

    def is_due(
        self, progress: Progress, rows: Rows, surprise: Callable[[], float], *, learn: bool
    ) -> bool:
        """Whether an update with these rows learns hyperparameters.

        Args:
            progress: How far the model has come before the rows.
            rows: The new observations.
            surprise: Tells how unusual the rows are. It is called only where that matters.
            learn: Whether the caller allows it.
        """
        if not learn or self.rule is None or self._is_flat(progress, rows):
            return False
        waits = progress.total + rows.size < progress.learned_at + self._pause(progress)
        if waits and not self.is_in_doubt(progress.doubt):
            return False
        return self._is_steady(progress) or surprise() < _CALM

    def is_time_for_starts(self, progress: Progress, rows: Rows) -> bool:
        """Whether an update that learns also tries hyperparameters that begin anew.

        That takes all rows. It is done when they have doubled, or when they came as nobody
        expected.
        """
        if not self.on_rows:
            return False
        total = progress.total + rows.size
        return progress.doubt.is_strong or total >= _ANEW * progress.started_at

    def is_in_doubt(self, doubt: Doubt) -> bool:
        """Whether rows came so unexpectedly that hyperparameters are learned without waiting."""
        return self.on_rows and self.rule is not None and doubt.is_strong

    def rule_for(self, progress: Progress, rows: Rows) -> VEM | None:
        """How an update with these rows learns hyperparameters, if it does.

        On rows most M steps are brief: they come often, and go on from where the last one ended.
        One that begins anew takes its time, and where M steps come very often, one does whenever
        the data have grown by half.
        """
        if self.rule is None or not self.on_rows or self.is_time_for_starts(progress, rows):
            return self.rule
        grown = _growths(progress.total + rows.size) > _growths(progress.learned_at)
        if grown and self.growth == 1.0:
            return self.rule
        return dataclasses.replace(self.rule, evaluations=min(self.brief, self.rule.evaluations))

    def samples_before_next(self, progress: Progress, rows: Rows, *, learn: bool) -> int:
        """How many of these samples, taken one by one, come before one that learns."""
        if not learn or self.rule is None or (rows.size and self._is_flat(progress, rows)):
            return rows.size
        if self.is_in_doubt(progress.doubt):
            return 0
        return max(progress.learned_at + self._pause(progress) - progress.total, 1) - 1

    def is_due_in_parts(self, seen: int, learned_at: int) -> bool:
        """Whether a part of a large batch learns, the last having done so after so many rows.

        Parts learn from ever larger pieces of the batch, so that the number of M steps grows with
        its logarithm.
        """
        return seen >= _GROWTH * learned_at

    def _pause(self, progress: Progress) -> int:
        """Observations between two M steps.

        On rows they grow apart with the data, so that what all of them cost together stays in
        proportion to the stream. What a stream loses by not having learned from its latest part
        depends on how large that part is of it all. At inducing points, what one M step leaves out
        is lost for the next one: there are `every` observations between them, fewer at first.
        """
        assert self.rule is not None
        last = progress.learned_at
        if not self.on_rows:
            return max(min(self.rule.every, last // 2), 1)
        part = min(math.sqrt(max(last / _SEVERAL, 1.0)) / _APART, 1 / _FARTHEST)
        part = max(part, self.growth - 1)
        return max(min(self.rule.every // _OFTEN, last // 2), int(part * last), 1)

    def _is_flat(self, progress: Progress, rows: Rows) -> bool:
        """Whether every channel, these rows included, has shown one value only, of a continuum.

        The density of such data has no bound: an M step would run off to no noise and an endless
        lengthscale, from where the first other value finds no way back.
        """
        return all(
            level is not None and not self.channels[name].support.is_discrete
            for name, level in progress.levels_with(rows).items()
        )

    def _is_steady(self, progress: Progress) -> bool:
        """Whether nothing fades, or there is no record yet of what is usual.

        While a fading past contradicts the present, an M step would call the difference noise, and
        new data would count for little against old data that came when noise was small.
        """
        return self.forgetting.factor == 1.0 or not progress.watches


def _growths(count: int) -> int:
    """How often a number of observations has grown by `_GROWTH`."""
    return int(math.log(count) / math.log(_GROWTH))
