"""How results are written: tables, claims, figures, Markdown, JSON and an HTML page."""
