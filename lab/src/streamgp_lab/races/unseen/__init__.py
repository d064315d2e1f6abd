"""Data that nothing was tuned to: more tables, and sensors with outages."""
