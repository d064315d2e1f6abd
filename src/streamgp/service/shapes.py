"""Shapes of requests and answers, for the description of the service."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from streamgp.service.names import PATTERN

Name = Annotated[str, Field(pattern=PATTERN, max_length=100, examples=["plant"])]
Value = Annotated[float, Field(allow_inf_nan=False)] | str
Table = dict[str, Any]


class Strict(BaseModel):
    """A request whose fields are all known, and of their own type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457), with what was expected, what came and what to do."""

    type: str
    title: str
    status: int
    detail: str
    instance: str = ""
    expected: str | None = None
    got: str | None = None
    remedy: str | None = None


class InferenceError(BaseModel):
    """What went wrong, as the Open Inference Protocol has it."""

    error: str


class Specification(Strict):
    """A model: the words are those of the TOML configuration of `streamgp run`."""

    name: Name
    channels: Annotated[
        dict[str, str | Table],
        Field(examples=[{"level": "Gaussian", "sky": {"kind": "Categorical", "classes": 3}}]),
    ]
    data: Annotated[Table, Field(examples=[{"inputs": "time"}])]
    model: Annotated[Table, Field(examples=[{"latents": 2}])] = {}
    stream: Annotated[Table, Field(examples=[{"samples": False}])] = {}

    def tables(self) -> dict[str, Any]:
        """The tables as the configuration has them."""
        return {
            name: table
            for name, table in self.model_dump(exclude={"name", "population"}).items()
            if table or name in ("channels", "data")
        }


class FleetSpecification(Specification):
    """A fleet. With `population`, new keys start from what the others have learned."""

    population: bool = True


class Glance(BaseModel):
    """What is known of a model without loading it."""

    name: str
    updates: int
    observations: dict[str, int]
    changed: str
    bytes: int


class Models(BaseModel):
    """Some models, in the order of their names."""

    models: list[Glance]
    total: int


class FleetModels(Models):
    """Some models of a fleet, and how many keys the start of new ones was learned from."""

    population: bool
    pooled_keys: int


class Description(BaseModel):
    """A model: what it was made of and how far it has come."""

    name: str
    specification: dict[str, Any]
    channels: dict[str, str]
    inputs: dict[str, str]
    engine: str | None
    updates: int
    observations: dict[str, int]
    latest: Any
    inducing_points: list[int]
    open_variance: list[float | None]
    budget: int | None
    seconds_since_last: float
    waiting: int
    alarms: list[dict[str, Any]]


class Learned(BaseModel):
    """What an update did. `repeated` says that it is the answer to an earlier request."""

    model_config = ConfigDict(extra="allow")

    update: int
    result: str
    observations: dict[str, int]
    repeated: bool = False


class KeysLearned(BaseModel):
    """What a request did to all keys together: how many were updated, and which are new."""

    updated: int
    begun: list[str]
    learned: int
    observations: dict[str, int]
    changed: list[dict[str, str]]
    errors: dict[str, dict[str, str]]
    repeated: bool = False


# Whatever is wrong with a column, there is no need to know every place.
_Values = Annotated[list[Value], Field(fail_fast=True)]


class PredictRequest(Strict):
    """Where to predict: at `inputs`, or `ahead` of the latest input at steps of `every`."""

    inputs: Annotated[
        _Values | Annotated[list[_Values], Field(fail_fast=True)] | dict[str, _Values] | None,
        Field(description="One value per row, a list of values per row, or columns by name."),
    ] = None
    ahead: int | Value | None = None
    every: Value | None = None
    channels: list[str] | None = None
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    quantiles: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(max_length=20)] = []
    calibrated: bool = False
    components: bool = False


class Predicted(BaseModel):
    """Predictions: inputs by column, and per channel mean, std, ends of the interval, quantiles."""

    model: str
    update: int
    inputs: dict[str, list[Any]]
    channels: dict[str, dict[str, Any]]


class Hyperparameters(BaseModel):
    """Every hyperparameter, in the units of the data."""

    model: str
    hyperparameters: dict[str, Any]


class HistoryAnswer(BaseModel):
    """Numbers of some of the updates, by column, and the latest alarms."""

    model: str
    columns: dict[str, list[float | None]]
    alarms: list[dict[str, Any]]


class Health(BaseModel):
    """Whether the service works."""

    status: str
    version: str
