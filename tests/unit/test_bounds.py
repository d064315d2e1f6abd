"""The paper's three-KL bound is the site bound, for any q, any points, any hyperparameters."""

import numpy as np
import pytest
from scipy.linalg import block_diag
from tests._reference import build, dense

from streamgp.inference.posterior import condition
from streamgp.inference.sites import through
from streamgp.inference.sparse.learner import Learner
from streamgp.inference.sparse.prior import Prior
from streamgp.parameters import unwrap


def random_normal(generator, size):
    root = generator.normal(size=(size, size + 2))
    return generator.normal(size=size), root @ root.T / size


@pytest.mark.parametrize("latents", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_three_kl_terms_equal_the_site_form(latents, seed):
    """E cancels on both sides; what is compared is all that stands behind it.

    log q̃/p(u|ψ_old) is log t̃ less its normaliser, so the paper's
    −KL[q‖p_new] + KL[q‖p_old] − KL[q‖q̃] must be E_q[log t̃] − log Z̃ − KL[q‖p_new].
    """
    generator = np.random.default_rng(seed)

    def random_model():
        channels = [build.channel(build.gaussian(0.4), [generator.normal(size=latents)])]
        return build.model(
            channels, generator.uniform(0.5, 1.5, latents), generator.uniform(0.5, 2, latents)
        )

    old_model, new_model = random_model(), random_model()
    old_z = [np.linspace(-3, 3, 5) + generator.uniform(-0.4, 0.4, 5) for _ in range(latents)]
    new_z = [np.linspace(-3, 3, 6) + generator.uniform(-0.4, 0.4, 6) for _ in range(latents)]
    x = generator.uniform(-3, 3, (30, 1))
    learner = Learner(learning=None)
    state = learner.init(old_model, build.points(*old_z))
    state, _ = learner.step(state, build.rows((0, x, np.sin(x[:, 0]))))
    moved = learner.move(state, build.points(*new_z))

    def prior(model):
        chols = Prior.of(unwrap(model), moved.points).chols
        return chols, block_diag(*[c @ c.T for c in chols])

    old_chols, old_prior = prior(old_model)
    new_chols, new_prior = prior(new_model)
    zero = np.zeros(6 * latents)
    old_root = block_diag(*old_chols)
    posterior = condition(moved.site)
    continual_mean = old_root @ posterior.mean
    half = np.linalg.solve(posterior.chol, old_root.T)
    q_mean, q_cov = random_normal(generator, 6 * latents)

    literal = (
        -dense.kl(q_mean, q_cov, zero, new_prior)
        + dense.kl(q_mean, q_cov, zero, old_prior)
        - dense.kl(q_mean, q_cov, continual_mean, half.T @ half)
    )

    site = through(moved.site, list(map(np.linalg.solve, old_chols, new_chols)))
    whiten = np.linalg.inv(block_diag(*new_chols))
    mean, cov = whiten @ q_mean, whiten @ q_cov @ whiten.T
    linear, precision = site.linear, site.precision
    expected_log_site = linear @ mean - 0.5 * (mean @ precision @ mean + np.trace(precision @ cov))
    site_form = (
        expected_log_site - posterior.log_evidence - dense.kl(q_mean, q_cov, zero, new_prior)
    )
    np.testing.assert_allclose(literal, site_form, rtol=1e-8)
