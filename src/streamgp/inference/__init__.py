"""Sites, and everything that is done with them."""
