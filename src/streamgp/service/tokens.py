"""Tokens: who may do what. Only their hashes are kept.

A token is 256 random bits, so one round of SHA-256 is enough: there is no short secret to guess.
"""

import dataclasses
import enum
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from streamgp.errors import ConfigurationError, problem

_LINE = re.compile(r"(?P<name>[\w.-]{1,64}) (?P<scopes>[a-z,]+) sha256:(?P<hash>[0-9a-f]{64})")


class Scope(enum.Enum):
    """What a token is good for."""

    READ = "read"  # predictions, reports, files of models
    WRITE = "write"  # observations
    ADMIN = "admin"  # models come and go


@dataclasses.dataclass(frozen=True)
class Token:
    """What is known of a token.

    Attributes:
        name: Of the program or person that has it, for the logs.
        scopes: What it is good for.
        hash: The SHA-256 hash of the token itself, in hexadecimal digits.
    """

    name: str
    scopes: frozenset[Scope]
    hash: str

    def __str__(self) -> str:
        scopes = ",".join(scope.value for scope in Scope if scope in self.scopes)
        return f"{self.name} {scopes} sha256:{self.hash}"


def new_token(name: str, scopes: Iterable[str]) -> tuple[str, Token]:
    """Draw a token.

    Args:
        name: Of the program or person that will have it.
        scopes: Some of "read", "write" and "admin".

    Returns:
        The token, which is to be told once, and what is kept of it.

    Raises:
        ConfigurationError: If the name or a scope cannot be used.

    Examples:
        >>> secret, token = new_token("plant", ["read", "write"])
        >>> owner_of(secret, [token]).name
        'plant'
    """
    secret = secrets.token_urlsafe(32)
    line = f"{name} {','.join(scopes)} sha256:{_hash(secret)}"
    return secret, _parsed(line)


def owner_of(secret: str, tokens: Sequence[Token]) -> Token | None:
    """Find what is known of a token, in a time that does not depend on how much of it is right."""
    hashed, found = _hash(secret), None
    for token in tokens:  # all of them: to stop early would tell which one it was
        if hmac.compare_digest(hashed, token.hash):
            found = token
    return found


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens: a name, scopes and a hash per line.

    Args:
        path: Of the file. Empty lines and lines that begin with # are passed over.

    Returns:
        The tokens.

    Raises:
        ConfigurationError: If a line is something else.
        OSError: If the file cannot be read.
    """
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return tuple(_parsed(line) for line in lines if line and not line.startswith("#"))


def append_token(path: Path, token: Token) -> None:
    """Add a token to a file, which only its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
        file.write(f"{token}\n")


def _parsed(line: str) -> Token:
    found = _LINE.fullmatch(line)
    names = found["scopes"].split(",") if found else []
    if found is None or not {*names} <= {scope.value for scope in Scope}:
        raise ConfigurationError(
            problem(
                "a name, scopes among read, write and admin, and sha256:… of a token",
                repr(line[:80]),
                "Make tokens with `streamgp token`.",
            )
        )
    return Token(found["name"], frozenset(map(Scope, names)), found["hash"])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
