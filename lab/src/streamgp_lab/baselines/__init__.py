"""Methods that streamgp is compared with, one file per method."""
