"""How the files in this folder were made. It runs with the versions that wrote format 2 only.

The files stay as they are, whatever becomes of the library: a format is a promise.

    git archive a1e09e4 src | tar x -C /tmp/old
    PYTHONPATH=/tmp/old/src:. python tests/golden/format2/make.py
"""

import json
import pathlib

import numpy as np

import streamgp as sgp
from tests.golden.format1.make import plain, predicted
from tests.golden.format2.streams import stream

HERE = pathlib.Path(__file__).parent
LEARNING = sgp.VEM(rounds=1, evaluations=5)


def models():
    yield (
        "alone",
        sgp.ContinualGP(
            sgp.Gaussian(), latents=sgp.RBF() + 0.5 * sgp.Periodic(period=2.0), forgetting=0.9
        ),
    )
    yield "price", sgp.ContinualGP(sgp.LogNormal(), latents=sgp.Matern52(), factorised=True)
    yield "measured", sgp.ContinualGP(sgp.Gaussian(error=True))
    yield (
        "families",
        sgp.ContinualGP(
            {
                "wind": sgp.Gaussian(),
                "snow": sgp.Gaussian(),
                "sky": sgp.Categorical(3),
                "rain": sgp.Poisson(),
            },
            latents=[sgp.RBF(), sgp.Matern32(2.0)],
            mixing={"rain": sgp.fixed(np.array([[0.5, 0.2]]))},
            inducing=sgp.Adaptive(0.1, 40),
            learning=LEARNING,
        ),
    )
    yield (
        "factorised",
        sgp.ContinualGP(
            {"grade": sgp.Ordinal(3), "load": sgp.StudentT(), "price": sgp.LogNormal()},
            latents=[(sgp.Matern52(), 2), sgp.RationalQuadratic()],
            inducing=sgp.Adaptive(0.1, 40),
            forgetting=sgp.Forgetting(0.5, per=3.0),
            carry=sgp.Marginals(),
            learning=LEARNING,
            factorised=True,
            seed=3,
        ),
    )


def after(model, batch, x, *, learn):
    """What a model says of one more batch, and then."""
    report = model.update(*batch[0], **batch[1], learn=learn)
    return {
        "log_predictive": plain(report.log_predictive),
        "surprise": plain(report.surprise),
        "hyperparameters": plain(model.hyperparameters),
        "predictions": predicted(model, x),
    }


def main():
    for name, model in models():
        batches, more, x = stream(name)
        for batch in batches:
            model.update(*batch[0], **batch[1])
        model.notes.update({"name": name, "levels": [1, 2.5, None], "array": np.arange(3.0)})
        model.save(HERE / f"{name}.sgp")
        said = {
            "channels": list(model.channels),
            "observations": plain(model.observations),
            "count": model.state.count,
            "inducing_points": plain(model.inducing_points),
            "hyperparameters": plain(model.hyperparameters),
            "predictions": predicted(model, x),
        }
        again = sgp.from_bytes(model.to_bytes())
        said["next"] = after(model, more, x, learn=False)
        said["learned"] = after(again, more, x, learn=True)
        (HERE / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
