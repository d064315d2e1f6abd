"""Which mean each channel has, from what the user asked for."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from streamgp.errors import ConfigurationError, problem
from streamgp.model.means.base import NONE, Mean, MeanSum
from streamgp.model.means.constant import Constant
from streamgp.model.means.seasonal import Seasonal

# One mean for all channels, or one for each of some channels by name. None: offsets stay where the
# first data put them.
Means: TypeAlias = Mean | Mapping[str, Mean | None] | None


def of_channel(means: Means, name: str, seasons: tuple[Seasonal, ...] = ()) -> Mean:
    """The mean of one channel, with its seasons; a constant where a dictionary leaves it out."""
    own = means.get(name, Constant()) if isinstance(means, Mapping) else means
    own = NONE if own is None else own
    return own + MeanSum(seasons) if seasons else own


def as_seasons(seasons: Any) -> tuple[Seasonal, ...]:
    """A period, a `Seasonal`, or a list of such, as seasons."""
    several = isinstance(seasons, list | tuple)
    return tuple(
        season if isinstance(season, Seasonal) else Seasonal(season)
        for season in (seasons if several else [seasons])
    )


def all_seasons(means: Means, seasons: tuple[Seasonal, ...]) -> tuple[Seasonal, ...]:
    """All seasons that some channel has."""
    parts: list[Any] = list(means.values() if isinstance(means, Mapping) else [means])
    found = list(seasons)
    for part in parts:
        if isinstance(part, MeanSum):
            parts.extend(part.parts)
        elif isinstance(part, Seasonal):
            found.append(part)
    return tuple(found)


def check(means: Means, channels: Mapping[str, Any], seasons: Any = ()) -> None:
    """Raise where a setting makes no sense."""
    if not (isinstance(seasons, tuple) and all(isinstance(s, Seasonal) for s in seasons)):
        raise ConfigurationError(
            problem("a tuple of seasons", repr(seasons), "Make them with `Seasonal(period)`.")
        )
    given = dict(means) if isinstance(means, Mapping) else {None: means}
    for name, mean in given.items():
        if name is not None and name not in channels:
            raise ConfigurationError(
                problem(f"means of channels among {list(channels)}", repr(name), "Check the name.")
            )
        if mean is not None and not isinstance(mean, Mean):
            raise ConfigurationError(
                problem(
                    "a mean such as `Constant()`, a dictionary of means by channel, or None",
                    repr(mean),
                    "Pass an instance. A kernel describes latent functions, not a mean.",
                )
            )
