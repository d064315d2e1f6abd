"""Carry: take what past data said from the old inducing points to new ones.

Two rules behind one interface. Both give a site Λ ⪰ 0, both lose nothing when the new points
include the old ones, and they differ only when points are dropped:

- `Marginals` keeps the old posterior's marginals at the new points, the paper's continual prior
  (Eq. 7). It is computed once, under the old hyperparameters.
- `Projection` keeps the old site where it was and reads it through E[u_old | u_new], the
  variational optimum of streaming sparse GPs (Bui et al., 2017). It follows the new
  hyperparameters and charges the bound for what the new points cannot express.
"""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from streamgp.generative import Generative
from streamgp.inference.conditioning import Inducing, condition, factorise
from streamgp.inference.sites import Site
from streamgp.linalg import cross_gram, solve_lower, symmetric

_LARGEST_SHARE = 1 - 1e-12  # of a direction's prior variance that data may have explained


class Carried(eqx.Module):
    """A site together with the points and the prior factor it was whitened by."""

    site: Site
    anchor: Inducing
    chol: Float[Array, "Q M M"]
    moved: bool = eqx.field(static=True)  # whether the anchor differs from the new points

    @property
    def log_normaliser(self) -> Float[Array, ""]:
        """log ∫ p(u | ψ_old) t(u) du, the constant that turns t into q̃ / p(u | ψ_old)."""
        return condition(self.site).log_evidence

    def at(
        self, model: Generative, inducing: Inducing, chol: Float[Array, "Q R R"]
    ) -> tuple[Site, Float[Array, ""]]:
        """The site on v = L⁻¹u at `inducing` under `model`, and the price of expressing it there."""
        if not self.moved:
            return _through(self.site, solve_lower(self.chol, chol)), jnp.zeros(())
        cross = _cross(model, self.anchor, inducing)  # K_on under the new hyperparameters
        regression = jnp.swapaxes(solve_lower(chol, jnp.swapaxes(cross, -1, -2)), -1, -2)
        anchored = factorise(model, self.anchor)
        lost = anchored @ _t(anchored) - regression @ _t(regression)  # K_oo − Q_oo
        half = solve_lower(self.chol, lost)
        whitened = _as_blocks(_t(solve_lower(self.chol, _t(half))), self.site)
        penalty = -0.5 * jnp.sum(self.site.precision * whitened)
        return _through(self.site, solve_lower(self.chol, regression)), penalty


class Carry(eqx.Module):
    """A rule for moving the site to inducing points that do not include the old ones."""

    @abstractmethod
    def __call__(
        self, model: Generative, old: Inducing, site: Site, new: Inducing
    ) -> Carried:
        """`model` holds the hyperparameters that `site` is whitened under."""


class Projection(Carry):
    """Keep the old site as pseudo-observations of the old inducing values."""

    def __call__(self, model: Generative, old: Inducing, site: Site, new: Inducing) -> Carried:
        return Carried(site, old, factorise(model, old), moved=True)


class Marginals(Carry):
    """Keep the old posterior's marginals at the new points (the paper's rule).

    With T = E[v_new | v_old] and S the old posterior covariance, the continual prior is
    N(T·m, I − Ω), Ω = T(I − S)Tᵀ = U diag(ω) Uᵀ; its site is Λ = U diag(ω/(1−ω)) Uᵀ.
    """

    def __call__(self, model: Generative, old: Inducing, site: Site, new: Inducing) -> Carried:
        old_chol, new_chol = factorise(model, old), factorise(model, new)
        half = solve_lower(new_chol, _t(_cross(model, old, new)))  # L_n⁻¹ K_no
        transition = _as_blocks(_t(solve_lower(old_chol, _t(half))), site)
        posterior = condition(site)
        half = solve_lower(posterior.chol, _t(transition))
        explained = symmetric(transition @ _t(transition) - _t(half) @ half)
        omega, vectors = jnp.linalg.eigh(explained)
        omega = jnp.clip(omega, 0.0, _LARGEST_SHARE)
        precision = (vectors * (omega / (1 - omega))[:, None, :]) @ _t(vectors)
        mean = jnp.einsum("gst,gt->gs", transition, posterior.mean)
        linear = mean + jnp.einsum("gst,gt->gs", precision, mean)
        return Carried(Site(linear, symmetric(precision)), new, new_chol, moved=False)


def stay(model: Generative, inducing: Inducing, site: Site) -> Carried:
    """Nothing to move: the points are the old ones, or include them slot by slot."""
    return Carried(site, inducing, factorise(model, inducing), moved=False)


def _cross(model: Generative, old: Inducing, new: Inducing) -> Float[Array, "Q M R"]:
    return jnp.stack(
        [
            cross_gram(kernel, old.points[q], old.mask[q], new.points[q], new.mask[q])
            for q, kernel in enumerate(model.latent_kernels)
        ]
    )


def _through(site: Site, maps: Float[Array, "Q M R"]) -> Site:
    """The site on v_new when v_old = C·v_new: λ ← Cᵀλ, Λ ← CᵀΛC."""
    c = _as_blocks(maps, site)
    linear = jnp.einsum("gst,gs->gt", c, site.linear)
    return Site(linear, symmetric(_t(c) @ site.precision @ c))


def _as_blocks(maps: Float[Array, "Q M R"], site: Site) -> Float[Array, "G S T"]:
    """Per-latent matrices as the site's blocks: block-diagonal when the latents are joint."""
    return maps if len(site.linear) == len(maps) else block_diag(*maps)[None]


def _t(a: Float[Array, "*b S T"]) -> Float[Array, "*b T S"]:
    return jnp.swapaxes(a, -1, -2)
