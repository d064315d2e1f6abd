"""`streamgp plot`: a picture of what a saved model knows, a panel a channel."""

from pathlib import Path

import streamgp as sgp


def run(path: Path, out: Path, *, channels: list[str] | None = None) -> None:
    """Draw every channel, or those named."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model = sgp.load(path)
    names = channels or list(model.channels)
    figure, axes = plt.subplots(
        len(names), figsize=(9, 2.6 * len(names)), squeeze=False, layout="constrained"
    )
    for ax, name in zip(axes[:, 0], names, strict=True):
        model.plot(name, ax=ax)
    figure.savefig(out, dpi=150)
    plt.close(figure)
