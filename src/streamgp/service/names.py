"""Names of models and fleets, and the keys under which the store has them.

A name becomes part of a key of the store and nothing else: never of a path.
"""

import re

from streamgp.errors import problem
from streamgp.service.problems import RefusedError

PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$"
_MODELS, _FLEETS, _MEMBERS = "model/", "fleet/", "member/"
_NAME = re.compile(PATTERN)


def check_name(name: str) -> str:
    """The name itself, if it can be one."""
    if not _NAME.fullmatch(name) or name.endswith("\n"):
        raise RefusedError(
            422,
            problem(
                "a name of at most 100 letters, digits and . _ : -, beginning with a letter or "
                "a digit",
                repr(name[:100]),
                "Choose another name.",
            ),
        )
    return name


def model_key(name: str) -> str:
    """The key of a model."""
    return _MODELS + check_name(name)


def fleet_key(name: str) -> str:
    """The key of what the models of a fleet begin as."""
    return _FLEETS + check_name(name)


def member_key(fleet: str, key: str) -> str:
    """The key of one model of a fleet."""
    return f"{members_of(fleet)}{check_name(key)}"


def members_of(fleet: str) -> str:
    """What the keys of a fleet's models begin with."""
    return f"{_MEMBERS}{check_name(fleet)}/"


def models() -> str:
    """What the keys of models begin with."""
    return _MODELS


def members() -> str:
    """What the keys of models of fleets begin with."""
    return _MEMBERS


def fleets() -> str:
    """What the keys of fleets begin with."""
    return _FLEETS


def shown(key: str) -> str:
    """A key as people see it: the name of a model, or of a fleet and its member."""
    return key.split("/", 1)[1]
