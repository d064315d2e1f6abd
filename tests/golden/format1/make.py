"""How the files in this folder were made. It runs with the versions that were built on JAX only.

The files stay as they are, whatever becomes of the library: a format is a promise.

    git archive 923f282 src | tar x -C /tmp/old
    PYTHONPATH=/tmp/old/src:. python tests/golden/format1/make.py
"""

import json
import pathlib

import numpy as np
import tinygp

import streamgp as sgp
from tests.golden.format1.streams import rule, stream

HERE = pathlib.Path(__file__).parent


def models():
    yield (
        "alone",
        sgp.ContinualGP(
            sgp.Gaussian(),
            latents=[sgp.RBF() + 0.5 * sgp.Periodic(period=2.0) + 2 * sgp.Linear()],
            forgetting=0.9,
        ),
    )
    yield (
        "families",
        sgp.ContinualGP(
            {"wind": sgp.Gaussian(), "sky": sgp.Categorical(3), "rain": sgp.Poisson()},
            latents=[sgp.RBF(), sgp.Matern32(2.0) * sgp.Periodic(period=sgp.fixed(7.0))],
            mixing={"rain": sgp.fixed(np.array([[0.5, 0.2]]))},
            inducing=sgp.Refined(sgp.Adaptive(0.05, 12), 5),
        ),
    )
    yield (
        "factorised",
        sgp.ContinualGP(
            {"grade": sgp.Ordinal(3), "load": sgp.StudentT(), "price": sgp.LogNormal()},
            latents=[(sgp.Matern52(), 2), sgp.RationalQuadratic(alpha=2)],
            inducing=sgp.Growing(rule),
            forgetting=sgp.Forgetting(0.5, per=3.0),
            carry=sgp.Marginals(),
            learning=sgp.VEM(rounds=1, evaluations=5),
            factorised=True,
            seed=3,
        ),
    )
    yield (
        "others",
        sgp.ContinualGP(
            {
                "yes": sgp.Bernoulli("probit"),
                "share": sgp.Beta(),
                "hits": sgp.Binomial(5),
                "wait": sgp.Exponential(),
                "sum": sgp.Gamma(shape=2.0),
                "real": sgp.HeteroscedasticGaussian(),
                "count": sgp.NegativeBinomial(),
            },
            latents=[
                tinygp.transforms.Subspace(1, sgp.RBF(1.5)) + sgp.Linear(2.0),
                sgp.Matern12(np.array([1.0, 3.0])),
            ],
            inducing=sgp.Fixed(np.stack([np.linspace(0, 6, 6), np.linspace(3, 0, 6)], axis=1)),
            learning=sgp.VEM(rounds=1, evaluations=3),
        ),
    )
    yield (
        "foreign",
        sgp.ContinualGP(
            {"a": sgp.Gaussian(noise=0.2), "b": sgp.Gaussian(sgp.fixed(0.1))},
            latents=[
                tinygp.transforms.Subspace(0, tinygp.kernels.Matern32(2.0)) + 0.5,
                tinygp.kernels.ExpSquared() * sgp.RBF(3.0),
            ],
            inducing=sgp.KMeans(6),
            learning=sgp.VEM(rounds=1, evaluations=5),
        ),
    )


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, str) else np.asarray(value).tolist()


def predicted(model, x):
    return {
        name: {
            "latent_mean": plain(p.latent_mean),
            "latent_variance": plain(p.latent_variance),
            "mean": plain(p.probabilities if getattr(p.likelihood, "classes", 0) else p.mean),
            "variance": plain(p.variance),
        }
        for name in model.channels
        for p in [model.predict(x, name)]
    }


def main():
    for name, model in models():
        batches, after, x = stream(name)
        for batch in batches:
            model.update(*batch[0], **batch[1])
        model.notes.update({"name": name, "levels": [1, 2.5, None], "array": np.arange(3.0)})
        model.save(HERE / f"{name}.sgp")
        said = {
            "channels": list(model.channels),
            "observations": plain(model.observations),
            "inducing_points": plain(model.inducing_points),
            "hyperparameters": plain(model.hyperparameters),
            "predictions": predicted(model, x),
        }
        report = model.update(*after[0], **after[1], learn=False)
        said["next"] = {
            "log_predictive": plain(report.log_predictive),
            "surprise": plain(report.surprise),
            "predictions": predicted(model, x),
        }
        (HERE / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
