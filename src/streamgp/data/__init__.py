"""From what people hand over to rows of numbers."""
