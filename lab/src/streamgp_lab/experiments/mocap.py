"""Mocap: three sensors of a walking person (the paper's Figure 10).

With `--data FOLDER`, where the folder has CMU's trial 02_01 as a .bvh file, the sensors are the
left wrist, the right wrist and the right femur. Otherwise an accelerometer stands in for them.
"""

import numpy as np

import streamgp as sgp
from streamgp.model.specification import Specification
from streamgp_lab.datasets import files
from streamgp_lab.experiments import methods, pictures
from streamgp_lab.experiments.experiment import Experiment, Options
from streamgp_lab.problem import Problem, merged, split

STEPS = 5
TEST_SHARE = 0.3
JOINTS = {
    "left wrist": ("LeftHand", "Xrotation"),  # the only angle of a wrist in that file
    "right wrist": ("RightHand", "Xrotation"),
    "right femur": ("RightUpLeg", "Yrotation"),
}
AXES = ("x", "y", "z")


def recording(options: Options) -> tuple[dict[str, np.ndarray], str]:
    """The channels, with one value per frame, and where they come from."""
    path = files.found(options.data, "*.bvh")
    if path is not None:
        joints = files.motion(path, JOINTS)
        walk = {name: angles[1:] for name, angles in joints.items()}  # the first frame is a T-pose
        return walk, f"{path.name}: angles in degrees. The input counts frames."
    note = "Stand-in: accelerometer of a walking person (BasicMotions, from sktime)."
    return dict(zip(AXES, files.walking().T, strict=True)), note


def problem(options: Options) -> Problem:
    channels, note = recording(options)
    generator = np.random.default_rng(options.seed)
    train: list = [{} for _ in range(STEPS)]
    test: list = [{} for _ in range(STEPS)]
    for name, y in channels.items():
        y = y[: int(len(y) * options.share)]
        held_out = generator.uniform(size=len(y)) < TEST_SHARE
        parts = np.array_split(np.arange(len(y)), STEPS)
        for t, (a, b) in enumerate(
            zip(*split(np.arange(len(y), dtype=float), y, held_out, parts, name), strict=True)
        ):
            train[t] |= a
            test[t] |= b
    return Problem(train, test, note=note)


def names(problem: Problem) -> dict[str, sgp.Likelihood]:
    return {name: sgp.Gaussian() for name in problem.channels}


def model(problem: Problem, seed: int, evaluations: int = 40) -> sgp.ContinualGP:
    learning = sgp.VEM(evaluations=evaluations)
    return sgp.ContinualGP(names(problem), latents=3, engine="dense", learning=learning, seed=seed)


def told_the_noise(problem: Problem, seed: int) -> Specification:
    """The noise of the paper: 0.3 on standardised channels."""
    everything = merged(problem.train)
    noises = {n: sgp.Gaussian(sgp.fixed(0.3 * np.std(y))) for n, (_, y) in everything.items()}
    span = max(np.ptp(x) for x, _ in everything.values())
    return Specification(noises, [sgp.RBF(lengthscale=0.05 * span)] * 3, seed=seed)


EXPERIMENT = Experiment(
    name="mocap",
    about="Three sensors of a walking person, with three latent functions, in five batches.",
    problem=problem,
    methods={
        methods.OURS: methods.Entry(model),
        methods.INDEPENDENT: methods.Entry(
            lambda p, seed: methods.Independent(
                {
                    name: sgp.ContinualGP(c, engine="dense", seed=seed)
                    for name, c in names(p).items()
                }
            )
        ),
        methods.SPARSE: methods.ONE_CHANNEL_ONLY,
        methods.PAPER: methods.Entry(
            lambda p, seed: methods.Paper(told_the_noise(p, seed), points=lambda t: 10 * t)
        ),
        methods.HORIZON: methods.ONE_CHANNEL_ONLY,
        methods.OFFLINE: methods.Entry(
            lambda p, seed: model(p, seed, evaluations=200), streaming=False
        ),
        methods.EXACT: methods.Entry(
            lambda p, seed: methods.Exact(Specification(names(p), 3, seed=seed)), streaming=False
        ),
    },
    pictures={"What the model knew": pictures.steps(0, 2, 4)},
)
