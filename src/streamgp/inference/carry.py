"""Carry: take what past data said from the old inducing points to new ones.

Two rules behind one interface: (model, old points, site, new points) → site at the new points,
both under the hyperparameters the site was learned with. Both give Λ ⪰ 0, both lose nothing when
the new points include the old ones, and they differ only when points are dropped:

- `Marginals` keeps the old posterior's marginals at the new points, the paper's continual prior
  (Eq. 7).
- `Projection` reads the old site through E[u_old | u_new], as pseudo-observations of the old
  inducing values: the variational optimum of streaming sparse GPs (Bui et al., 2017).

A change of hyperparameters afterwards is `rewhitened`, exactly.
"""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from streamgp.inference.conditioning import Inducing, condition, factorise
from streamgp.inference.sites import Site, as_blocks
from streamgp.model.multitask import Generative
from streamgp.numerics.linalg import cross_gram, eigh, solve_lower, symmetric
from streamgp.registry import storable

_LARGEST_SHARE = 1 - 1e-12  # of a direction's prior variance that data may have explained


class Carry(eqx.Module):
    """A rule for moving the site to inducing points that do not include the old ones."""

    @abstractmethod
    def __call__(self, model: Generative, old: Inducing, site: Site, new: Inducing) -> Site:
        """The site at `new`; `model` holds the hyperparameters that it is whitened under."""


@storable
class Projection(Carry):
    """Keep the old site as pseudo-observations: with v_old = C·v_new, λ ← Cᵀλ and Λ ← CᵀΛC."""

    def __call__(self, model: Generative, old: Inducing, site: Site, new: Inducing) -> Site:
        return through(site, _t(_transition(model, old, new)))


@storable
class Marginals(Carry):
    """Keep the old posterior's marginals at the new points (the paper's rule).

    With T = E[v_new | v_old] and S the old posterior covariance, the continual prior is
    N(T·m, I − Ω), Ω = T(I − S)Tᵀ = U diag(ω) Uᵀ; its site is Λ = U diag(ω/(1−ω)) Uᵀ.
    """

    def __call__(self, model: Generative, old: Inducing, site: Site, new: Inducing) -> Site:
        transition = as_blocks(_transition(model, old, new), len(site.linear))
        posterior = condition(site)
        half = solve_lower(posterior.chol, _t(transition))
        omega, vectors = eigh(symmetric(transition @ _t(transition) - _t(half) @ half))
        omega = jnp.clip(omega, 0.0, _LARGEST_SHARE)
        precision = (vectors * (omega / (1 - omega))[:, None, :]) @ _t(vectors)
        mean = jnp.einsum("gst,gt->gs", transition, posterior.mean)
        linear = mean + jnp.einsum("gst,gt->gs", precision, mean)
        return Site(linear, symmetric(precision))


def rewhitened(
    site: Site, old_chol: Float[Array, "Q M M"], new_chol: Float[Array, "Q M M"]
) -> Site:
    """The same site on u, whitened by another prior factor: v_old = L_old⁻¹ L_new v_new."""
    return through(site, solve_lower(old_chol, new_chol))


def _transition(model: Generative, old: Inducing, new: Inducing) -> Float[Array, "Q R M"]:
    """T = L_n⁻¹ K_no L_o⁻ᵀ: E[v_new | v_old] = T·v_old, and E[v_old | v_new] = Tᵀ·v_new."""
    cross = jnp.stack(
        [
            cross_gram(kernel, old.points[q], old.mask[q], new.points[q], new.mask[q])
            for q, kernel in enumerate(model.latent_kernels)
        ]
    )
    half = solve_lower(factorise(model, old), cross)  # L_o⁻¹ K_on
    return solve_lower(factorise(model, new), _t(half))


def through(site: Site, maps: Float[Array, "Q M R"]) -> Site:
    """The site on v_new when v_old = C·v_new: λ ← Cᵀλ, Λ ← CᵀΛC."""
    c = as_blocks(maps, len(site.linear))
    linear = jnp.einsum("gst,gs->gt", c, site.linear)
    return Site(linear, symmetric(_t(c) @ site.precision @ c))


def _t(a: Float[Array, "*b S T"]) -> Float[Array, "*b T S"]:
    return jnp.swapaxes(a, -1, -2)
