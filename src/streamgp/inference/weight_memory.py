"""What the past says of weights and noises, as an expansion with q(v) held.

It takes the place of sums per channel where those cannot be kept: see `carry.Marginals`.
"""

from streamgp.inference import memory
from streamgp.inference.memory import Memory, Vector
from streamgp.inference.reading import Reading, by_channels
from streamgp.inference.state import State
from streamgp.numerics.linalg import positive_part
from streamgp.parameters import free_gradient, free_vector, replaced, unwrap, with_free


def expand_weights(state: State) -> Memory:
    """The expansion of E_q[log of what the past says] in the parameters of the channels."""
    posterior, wrapped = state.posterior, state.model
    by_precision = tuple(-0.5 * second for second in posterior.second)

    def gradient(theta: Vector) -> Vector:
        channels = with_free(wrapped.channels, theta)
        model = replaced(state.plain, channels=unwrap(channels))
        by = Reading.of(model).adjoint(state.past, posterior.mean, by_precision)
        return free_gradient(channels, tuple(by_channels(model, by)))

    here, hessian = memory.expand(gradient, free_vector(wrapped.channels), central=True)
    said = Memory(here, positive_part(-hessian))
    return memory.joined(memory.blank(wrapped.kernels), said)
