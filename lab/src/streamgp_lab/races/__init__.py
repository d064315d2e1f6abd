"""Races: streamgp and other libraries on the same streams, measured for time and accuracy."""
