"""The configuration of a stream: tables that describe a model and its data.

`streamgp run` reads them from a TOML file, the service from JSON, in the same words.
"""

import dataclasses
import datetime
import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamgp as sgp
from streamgp import inducing, kernels, likelihoods
from streamgp.errors import ConfigurationError, StreamGPError, problem
from streamgp.persistence.annotations import misfit
from streamgp.registry import is_ours

EXAMPLE = """\
    [channels]
    temperature = "Gaussian"
    sky = { kind = "Categorical", classes = 3 }

    [data]
    inputs = "time"             # or a list of columns
    channel = "sensor"          # only for long tables: the column with the name of the channel
    value = "reading"           # only for long tables: the column with the value
    format = "%d/%m/%Y %H:%M"   # only for dates that are not in ISO 8601
    on_error = "stop"           # at a row that cannot be used; or "skip" to leave it out

    [model]                     # every line is optional
    latents = ["RBF", { kind = "Matern32", lengthscale = 2.0 }]     # or a number of functions
    keep = 5000                 # how many rows of the past are kept; 0 for none
    learning = { evaluations = 40 }                                  # or false
    forgetting = 0.99

    [stream]                    # every line is optional
    batch = 500                 # the number of rows that are learned together
    samples = false             # true: the rows of a batch are learned one at a time
    snapshot = 10               # the number of seconds between snapshots
"""


# Kernels that are made of other kernels or of functions, for which these tables have no words.
_COMPOSED = frozenset({"FunctionKernel", "Multiple", "OnColumns", "Product", "Sum"})
# The settings of a model that can be written, and what each of them is.
_SETTINGS: dict[str, tuple[type, ...]] = {
    "latents": (int, list),
    "inducing": (str, dict),
    "learning": (bool, dict),
    "mixing": (dict,),
    "forgetting": (int, float),
    "keep": (int, str),
    "scale": (bool, dict),
    "seasons": (list,),
    "weight_uncertainty": (bool,),
    "engine": (str,),
    "outliers": (str,),
    "seed": (int,),
}

ON_ERROR = ("stop", "skip")
_A_DATE = datetime.datetime(2001, 2, 3)
_KINDS = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list",
    dict: "a table",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Data:
    """Which columns of a table are the inputs, which hold channels and values, and how cells read.

    Attributes:
        inputs: The name of the input column, or a list of names.
        channel: The column with the channels' names, if the table is long.
        value: The column with the values, if the table is long.
        format: The form of dates, as `strptime` has it; with several inputs, by column. None if
            dates are in ISO 8601.
        on_error: What to do with rows that cannot be used: "stop" before they are learned, or
            "skip" them. If it is None, tables stop, and feeds of brokers skip.

    Raises:
        ConfigurationError: If a format or what to do on an error is unknown.
    """

    inputs: str | list[str]
    channel: str | None = None
    value: str | None = None
    format: str | dict[str, str] | None = None
    on_error: str | None = None

    def __post_init__(self) -> None:
        if self.on_error is not None and self.on_error not in ON_ERROR:
            raise ConfigurationError(
                problem('"stop" or "skip" for `on_error`', repr(self.on_error), "Correct [data].")
            )
        if self.format is not None:
            self._check_formats()

    @property
    def columns(self) -> list[str]:
        """The names of the input columns."""
        return [self.inputs] if isinstance(self.inputs, str) else list(self.inputs)

    @property
    def formats(self) -> dict[str, str]:
        """The form of the dates in each column that has one of its own."""
        if isinstance(self.format, str):
            return {self.columns[0]: self.format}
        return dict(self.format or {})

    @property
    def meaning(self) -> dict[str, Any]:
        """The settings that must be the same when a run is continued."""
        return {k: v for k, v in dataclasses.asdict(self).items() if k != "on_error"}

    def _check_formats(self) -> None:
        columns = self.columns
        is_table = isinstance(self.format, dict)
        if not (is_table and set(self.formats) <= set(columns)) and not (
            isinstance(self.format, str) and len(columns) == 1
        ):
            raise ConfigurationError(
                problem(
                    "one `format` for the one input column, or a table of them by input column",
                    f"{self.format!r} for {columns}",
                    f'Write, for example, `format = {{ {columns[0]} = "%d/%m/%Y" }}`.',
                )
            )
        for form in self.formats.values():
            if not _is_date_format(form):
                raise ConfigurationError(
                    problem(
                        "a `format` of dates with %Y, %m, %d and the like",
                        repr(form),
                        'Write, for example, `format = "%d/%m/%Y %H:%M"`.',
                    )
                )


@dataclasses.dataclass(frozen=True)
class Stream:
    """How the rows are read and learned, and how often the model is saved."""

    batch: int = 500
    samples: bool = False
    snapshot: float = 10.0

    def __post_init__(self) -> None:
        if not (isinstance(self.batch, int) and self.batch >= 1 and self.snapshot >= 0):
            raise ConfigurationError(
                problem(
                    "a batch of at least 1 row and a number of seconds between snapshots",
                    f"batch = {self.batch!r}, snapshot = {self.snapshot!r}",
                    "Correct the table [stream].",
                )
            )


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that a configuration file says."""

    model: dict[str, Any]  # as written in the file
    channels: dict[str, Any]
    data: Data
    stream: Stream

    def build(self) -> sgp.ContinualGP:
        """Make the model that the configuration describes.

        Returns:
            A model without data.

        Raises:
            ConfigurationError: If a name or a setting is unknown.
        """
        channels = {
            name: _made(entry, _kinds(likelihoods, likelihoods.Likelihood), f"channel {name!r}")
            for name, entry in self.channels.items()
        }
        settings = _written(self.model)
        if isinstance(settings.get("latents"), list):
            known = {n: k for n, k in _kinds(kernels, kernels.Kernel).items() if n not in _COMPOSED}
            settings["latents"] = [_made(k, known, "a kernel") for k in settings["latents"]]
        if "inducing" in settings:
            known = {name: getattr(inducing, name) for name in ("Adaptive", "KMeans")}
            settings["inducing"] = _made(settings["inducing"], known, "a strategy")
        if "learning" in settings:
            rule = settings["learning"]
            settings["learning"] = None if rule is False else _rule(rule)
        return _called(sgp.ContinualGP, {"channels": channels, **settings}, "[model]")

    @property
    def meaning(self) -> dict[str, Any]:
        """The settings that must be the same when a run is continued."""
        return {
            "channels": self.channels,
            "model": self.model,
            "data": self.data.meaning,
            "stream": {"batch": self.stream.batch, "samples": self.stream.samples},
        }


def read(path: Path) -> Config:
    """Read a configuration.

    Args:
        path: The TOML file.

    Returns:
        The configuration.

    Raises:
        ConfigurationError: If the file is not TOML, or a table or a setting is unknown.
        OSError: If the file cannot be read.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            problem("a TOML file", f"{path} ({error})", "See `streamgp run --help`.")
        ) from error
    return from_tables(tables)


def from_tables(tables: Mapping[str, Any]) -> Config:
    """Make a configuration of its tables.

    Args:
        tables: The tables `channels` and `data`, and optionally `model` and `stream`, by name.

    Returns:
        The configuration.

    Raises:
        ConfigurationError: If a table or a setting is unknown.

    Examples:
        >>> tables = {"channels": {"load": "Gamma"}, "data": {"inputs": "time"}}
        >>> from_tables(tables).build().channels
        ('load',)
    """
    known, asked = {"channels", "model", "data", "stream"}, {"channels", "data"}
    if not (asked <= set(tables) <= known and all(isinstance(t, dict) for t in tables.values())):
        raise ConfigurationError(
            problem(
                "the tables [channels] and [data], and optionally [model] and [stream]",
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


def _is_date_format(form: Any) -> bool:
    """Whether a format of `strptime` has at least a year."""
    try:
        return datetime.datetime.strptime(_A_DATE.strftime(form), form).year == _A_DATE.year
    except (TypeError, ValueError):
        return False


def _kinds(module: Any, base: type) -> dict[str, type]:
    """The classes of a module that can be made, by name."""
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, base) and not inspect.isabstract(kind)
    }


def _written(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of [model], each of a kind that makes sense for it."""
    for name, value in settings.items():
        kinds = _SETTINGS.get(name)
        if kinds is None:
            raise ConfigurationError(
                problem(f"settings of [model] among {[*_SETTINGS]}", repr(name), "Check the name.")
            )
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            raise ConfigurationError(problem(f"{wanted} for {name!r}", repr(value), "Correct it."))
    return dict(settings)


def _rule(entry: Any) -> sgp.VEM:
    """The learning rule of a table of settings; `true` is the rule with its defaults."""
    if entry is not True and not isinstance(entry, dict):
        raise ConfigurationError(
            problem("a table of settings, true or false for learning", repr(entry), "Correct it.")
        )
    return _called(sgp.VEM, {} if entry is True else entry, "learning")


def _made(entry: Any, known: Mapping[str, type], where: str) -> Any:
    """Make an object from the name of its kind, or from a table with `kind` and settings."""
    settings = dict(entry) if isinstance(entry, dict) else {"kind": entry}
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in known:
        raise ConfigurationError(
            problem(f"{where} of a kind among {sorted(known)}", repr(kind), "Check the name.")
        )
    if "base" in settings:  # of a likelihood that is made of another one
        settings["base"] = _made(settings["base"], known, where)
    return _called(known[kind], settings, where)


def _called(kind: Any, settings: Mapping[str, Any], where: str) -> Any:
    """Call `kind(**settings)`. A setting that does not exist is an error with a sentence."""
    possible = [name for name in inspect.signature(kind).parameters if name != "self"]
    unknown = sorted(set(settings) - set(possible))
    if unknown:
        raise ConfigurationError(
            problem(f"settings of {where} among {possible}", f"{unknown}", "Check the names.")
        )
    try:
        made = kind(**settings)
        wrong = misfit(made) if is_ours(kind) else None
        if wrong is not None:
            raise TypeError(wrong)
        return made
    except StreamGPError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ConfigurationError(
            problem(f"the settings of {where}", str(error), "See `streamgp run --help`.")
        ) from error
