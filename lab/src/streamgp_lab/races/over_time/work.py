"""One topic in a process of its own.

    python -m streamgp_lab.races.over_time.work TOPIC SHARE

It prints figures by name, as JSON. Topics use only what earlier revisions offer as well, except
those of `keep`, so that PYTHONPATH may point at one of them.
"""

import json
import sys
import warnings
from importlib import import_module

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    topic = import_module(f"streamgp_lab.races.over_time.{sys.argv[1]}")
    sys.stdout.write(json.dumps(topic.measure(float(sys.argv[2]))))
