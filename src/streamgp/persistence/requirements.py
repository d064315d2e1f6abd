"""What the parts of a file must be like."""


def require(holds: bool, what: str) -> None:
    """Refuse a file unless something holds of its parts."""
    if not holds:
        raise ValueError(f"expected {what}")
