"""The compiled core: what an evidence with its gradient costs, beside another revision."""
