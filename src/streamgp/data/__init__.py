"""Data: from arrays and frames as users have them to rows of numbers."""
