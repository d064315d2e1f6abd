"""How latent functions become the latent parameters of channels."""

from streamgp.mixing.lmc import Features, mix

__all__ = ["Features", "mix"]
