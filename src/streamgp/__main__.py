"""`python -m streamgp` is the command `streamgp`."""

from streamgp.cli import main

if __name__ == "__main__":
    main()
