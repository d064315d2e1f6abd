"""What can go wrong, as sentences: what was expected, what came, what to do."""


class StreamGPError(Exception):
    """The root of every error this library raises on purpose."""


class DataError(StreamGPError, ValueError):
    """The data of a call cannot be used; the model is as it was."""


class ConfigurationError(StreamGPError, ValueError):
    """The model was asked for something contradictory."""


class NumericalError(StreamGPError, ArithmeticError):
    """An update did not end in finite numbers; the model is as it was."""


class FileError(StreamGPError, ValueError):
    """A model cannot be put into a file, or bytes are not those of a model."""


class StoreError(StreamGPError, OSError):
    """The database of a store cannot be used; nothing of the transaction is in it."""


class StaleError(StreamGPError, RuntimeError):
    """What a store holds has changed since it was read; nothing of the transaction is in it."""


class SourceError(StreamGPError, OSError):
    """A feed cannot be read, perhaps only for now."""


class UnknownKeyError(StreamGPError, KeyError):
    """A store or a fleet has no model of that key."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # a `KeyError` would put it in quotes


class Problem(str):
    """The text of an error, with its three parts, for programs that show them apart.

    Attributes:
        expected: What was expected.
        got: What came.
        remedy: What to do.
    """

    __slots__ = ("expected", "got", "remedy")

    expected: str
    got: str
    remedy: str

    def __new__(cls, expected: str, got: str, remedy: str) -> "Problem":
        text = super().__new__(cls, f"expected {expected}; got {got}. {remedy}")
        text.expected, text.got, text.remedy = expected, got, remedy
        return text

    def __reduce__(self) -> tuple[type["Problem"], tuple[str, str, str]]:
        return Problem, (self.expected, self.got, self.remedy)


def problem(expected: str, got: str, remedy: str) -> Problem:
    """The one shape of every message."""
    return Problem(expected, got, remedy)


class BudgetWarning(UserWarning):
    """Inducing points had to go for want of room, so the past is held less finely than before."""


class EpochWarning(UserWarning):
    """Inputs that are learned as plain numbers look like seconds, or parts of them, since 1970."""
