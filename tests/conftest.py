"""What all tests share."""

import os

os.environ["MPLBACKEND"] = "Agg"  # pictures are drawn, and shown nowhere
