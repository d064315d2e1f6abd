"""Real streams to try the library on."""
