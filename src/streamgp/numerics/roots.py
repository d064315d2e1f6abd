"""Roots of many monotone functions at once."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_STEPS = 100
_EXACT = 1e-11
_TINY = 1e-300
_SMALL = 1e-30  # values below it are told apart as numbers, not by magnitude


def chandrupatla(
    evaluate: Callable,
    ends: Float[Array, "2 N"],
    heights: Float[Array, "2 N"],
    narrow: float | None,
) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """A root, or the upper end of a bracket of width `narrow`; and the error at the last point.

    Inverse quadratic interpolation where the last three points allow it, else halving.
    """

    def step(s: dict[str, Array]) -> dict[str, Array]:
        x = s["a"] + s["t"] * (s["b"] - s["a"])
        fx, error = evaluate(x)
        same = (fx >= 0) == (s["fa"] >= 0)
        c, fc = jnp.where(same, s["a"], s["b"]), jnp.where(same, s["fa"], s["fb"])
        b, fb = jnp.where(same, s["b"], s["a"]), jnp.where(same, s["fb"], s["fa"])
        width = jnp.abs(b - x)
        limit = 1e-13 * (jnp.abs(x) + jnp.abs(b)) + _TINY if narrow is None else 0.5 * narrow
        share = limit / (width + _TINY)
        xi, phi = (x - b) / (c - b), (fx - fb) / (fc - fb)
        smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        bent = fx / (fb - fx) * fc / (fb - fc) + (c - x) / (b - x) * fx / (fc - fx) * fb / (fc - fb)
        half = (_between(x, b) - x) / (b - x)
        t = jnp.clip(jnp.where(smooth & jnp.isfinite(bent), bent, half), share, 1 - share)
        new = {"a": x, "b": b, "fa": fx, "fb": fb, "t": t, "error": error}
        new["done"] = (share > 0.5) | ((jnp.abs(fx) < _EXACT) & (narrow is None))
        kept = {name: jnp.where(s["done"], s[name], value) for name, value in new.items()}
        return kept | {"steps": s["steps"] + 1}

    none = jnp.zeros_like(ends[0])
    begin = {"a": ends[0], "b": ends[1], "fa": heights[0], "fb": heights[1]}
    begin |= {"t": none + 0.5, "error": none, "done": none > 0, "steps": jnp.asarray(0)}
    end = jax.lax.while_loop(lambda s: ~jnp.all(s["done"]) & (s["steps"] < _STEPS), step, begin)
    upper, nearer = end["fa"] >= 0, jnp.abs(end["fa"]) < jnp.abs(end["fb"])
    return jnp.where(nearer if narrow is None else upper, end["a"], end["b"]), end["error"]


def _between(a: Float[Array, " N"], b: Float[Array, " N"]) -> Float[Array, " N"]:
    """Halfway: by value where the two are close, else by magnitude.

    A variance of 1e80 may belong to a quantile of 1e-3, which halving by value would not reach.
    """
    is_close = jnp.abs(b - a) <= 0.5 * jnp.maximum(jnp.abs(a), jnp.abs(b))
    magnitude = 0.5 * (jnp.arcsinh(a / _SMALL) + jnp.arcsinh(b / _SMALL))
    return jnp.where(is_close, 0.5 * (a + b), _SMALL * jnp.sinh(magnitude))
