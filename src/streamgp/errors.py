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


class UnknownKeyError(StreamGPError, KeyError):
    """A store or a fleet has no model of that key."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # a `KeyError` would put it in quotes


def problem(expected: str, got: str, remedy: str) -> str:
    """The one shape of every message."""
    return f"expected {expected}; got {got}. {remedy}"


class BudgetWarning(UserWarning):
    """Inducing points had to go for want of room, so the past is held less finely than before."""


class EpochWarning(UserWarning):
    """Inputs that are learned as plain numbers look like seconds, or parts of them, since 1970."""
