"""Methods that streamgp is compared with."""
