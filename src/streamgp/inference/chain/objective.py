"""What an M step on a chain makes as large as possible."""

import dataclasses
import functools
from collections.abc import Callable, Hashable

from streamgp.inference.asking import Answer, Vector
from streamgp.inference.beliefs import Beliefs
from streamgp.inference.chain.evidence import Past, evidence
from streamgp.inference.chain.law import Law
from streamgp.inference.chain.many_laws import kind_of
from streamgp.inference.chain.numbers import Numbers
from streamgp.inference.chain.segments import joined
from streamgp.inference.chain.state import ChainState
from streamgp.kernels.state_space import LineState
from streamgp.model.multitask import MultiTaskGP
from streamgp.parameters import unwrap, with_free


@dataclasses.dataclass(frozen=True, eq=False)
class ChainObjective:
    """The evidence of all data, priors included, per observation.

    Attributes:
        past: What all data said.
        wrapped: The model whose hyperparameters are moved.
        beliefs: What is believed of them beside.
        more: What rows say of parameters that sums cannot tell, if there are such rows.
    """

    past: Past
    wrapped: MultiTaskGP
    beliefs: Beliefs
    more: Callable[[MultiTaskGP], Answer] | None = None

    def __call__(self, theta: Vector) -> Answer:
        """Value and gradient at free parameters."""
        there = with_free(self.wrapped, theta)
        value, gradient = evidence(self.past, there, self.numbers)
        if self.more is not None:
            more, by = self.more(there)
            value, gradient = value + more, gradient + by
        return self.beliefs.objective(theta, value, gradient)

    @classmethod
    def of_data(cls, state: ChainState) -> "ChainObjective":
        """What all data say of hyperparameters, up to a constant; no priors."""
        state = state.closed
        past = Past(joined(state.segments), state.totals)
        return cls(past, state.model, Beliefs.none(state.model, state.memory))

    @functools.cached_property
    def law(self) -> Law:
        """The law of the model that it began from."""
        return Law.of(unwrap(self.wrapped))

    @functools.cached_property
    def sort(self) -> Hashable:
        """What objectives must have in common to be evaluated together; None for one alone."""
        kind, affine, segment = kind_of(self.law), self.numbers.affine, self.past.segment
        if kind is None or affine is None or self.more is not None:
            return None
        if any(isinstance(part, LineState) for part in self.law.parts):
            return None  # its covariance depends on when it begins
        return kind, segment.linear.shape[1:], segment.precision.shape[1:], affine.slope.tobytes()

    @functools.cached_property
    def numbers(self) -> Numbers:
        """How the kernels' states depend on their parameters."""
        return Numbers(self.wrapped)
