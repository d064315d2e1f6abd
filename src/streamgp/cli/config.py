"""From a TOML file to a model and the way its data come."""

import dataclasses
import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamgp as sgp
from streamgp import inducing, kernels, likelihoods
from streamgp.errors import ConfigurationError, problem

EXAMPLE = """\
    [channels]
    temperature = "Gaussian"
    sky = { kind = "Categorical", classes = 3 }

    [data]
    inputs = "time"             # or several columns
    channel = "sensor"          # for long tables: which column names the channel …
    value = "reading"           # … and which has its value; without them a column is a channel

    [model]                     # all of it optional
    latents = ["RBF", { kind = "Matern32", lengthscale = 2.0 }]     # or a number of them
    inducing = { kind = "Adaptive", budget = 128 }
    learning = { every = 100 }                                       # or false
    forgetting = 0.99

    [stream]                    # all of it optional
    batch = 500                 # rows that are read and learned together
    samples = false             # true: learned one by one
    snapshot = 10               # seconds between snapshots
"""


@dataclasses.dataclass(frozen=True)
class Data:
    """Which columns of a table are what."""

    inputs: str | list[str]
    channel: str | None = None
    value: str | None = None

    @property
    def columns(self) -> list[str]:
        """The input columns."""
        return [self.inputs] if isinstance(self.inputs, str) else list(self.inputs)


@dataclasses.dataclass(frozen=True)
class Stream:
    """How the rows are taken."""

    batch: int = 500
    samples: bool = False
    snapshot: float = 10.0

    def __post_init__(self) -> None:
        if not (isinstance(self.batch, int) and self.batch >= 1 and self.snapshot >= 0):
            raise ConfigurationError(
                problem(
                    "a batch of at least one row and seconds between snapshots",
                    f"batch = {self.batch!r}, snapshot = {self.snapshot!r}",
                    "Mend [stream].",
                )
            )


@dataclasses.dataclass(frozen=True)
class Config:
    """What a run is to do."""

    model: dict[str, Any]  # as written: also what a resumed run is compared with
    channels: dict[str, Any]
    data: Data
    stream: Stream

    def build(self) -> sgp.ContinualGP:
        """The model, before any data."""
        channels = {
            name: _made(entry, _kinds(likelihoods, likelihoods.Likelihood), f"channel {name!r}")
            for name, entry in self.channels.items()
        }
        settings = dict(self.model)
        if isinstance(settings.get("latents"), list):
            known = _kinds(kernels, kernels.Kernel)
            settings["latents"] = [_made(k, known, "a latent") for k in settings["latents"]]
        if "inducing" in settings:
            known = {name: getattr(inducing, name) for name in ("Adaptive", "KMeans")}
            settings["inducing"] = _made(settings["inducing"], known, "inducing")
        if "learning" in settings:
            rule = settings["learning"]
            settings["learning"] = (
                _made({"kind": "VEM", **rule}, {"VEM": sgp.VEM}, "learning") if rule else None
            )
        return _called(sgp.ContinualGP, {"channels": channels, **settings}, "[model]")

    @property
    def meaning(self) -> dict[str, Any]:
        """What must not change between a run and the one that goes on with it."""
        return {
            "channels": self.channels,
            "model": self.model,
            "data": dataclasses.asdict(self.data),
            "stream": {"batch": self.stream.batch, "samples": self.stream.samples},
        }


def read(path: Path) -> Config:
    """The configuration in a TOML file."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            problem("a TOML file", f"{path} ({error})", "See `streamgp run --help`.")
        ) from error
    unknown = sorted(set(tables) - {"channels", "model", "data", "stream"})
    if unknown or "channels" not in tables or "data" not in tables:
        raise ConfigurationError(
            problem(
                "the tables [channels] and [data], perhaps [model] and [stream]",
                f"{sorted(tables)}",
                "See `streamgp run --help`.",
            )
        )
    return Config(
        model=tables.get("model", {}),
        channels=tables["channels"],
        data=_called(Data, tables["data"], "[data]"),
        stream=_called(Stream, tables.get("stream", {}), "[stream]"),
    )


def _kinds(module: Any, base: type) -> dict[str, type]:
    """The classes that a module offers by name."""
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, base) and not inspect.isabstract(kind)
    }


def _made(entry: Any, known: Mapping[str, type], where: str) -> Any:
    """An object from its kind's name, or from a table with `kind` and settings."""
    settings = {"kind": entry} if isinstance(entry, str) else dict(entry)
    kind = settings.pop("kind", None)
    if kind not in known:
        raise ConfigurationError(
            problem(f"for {where} a kind among {sorted(known)}", repr(kind), "Check the name.")
        )
    return _called(known[kind], settings, where)


def _called(kind: Any, settings: Mapping[str, Any], where: str) -> Any:
    """`kind(**settings)`, with a sentence where a setting does not exist."""
    possible = [name for name in inspect.signature(kind).parameters if name != "self"]
    unknown = sorted(set(settings) - set(possible))
    if unknown:
        raise ConfigurationError(
            problem(f"in {where} settings among {possible}", f"{unknown}", "Check the names.")
        )
    try:
        return kind(**settings)
    except TypeError as error:
        raise ConfigurationError(
            problem(f"the settings of {where}", str(error), "See `streamgp run --help`.")
        ) from error
