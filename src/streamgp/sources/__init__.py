"""Where rows come from, with places in them that a program can go on from."""

from streamgp.sources.feed import AbstractFeed, FileFeed, Messages, flat
from streamgp.sources.growing_file import Follower, Lines, Place

__all__ = ["AbstractFeed", "FileFeed", "Follower", "Lines", "Messages", "Place", "flat"]
