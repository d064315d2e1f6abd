"""One topic in a process of its own.

    python -m streamgp_lab.races.work MODULE ARGUMENTS

It gives the topic's `measure` the arguments, a list as JSON, and prints figures by name, as JSON.
Topics use only what earlier revisions offer as well, except those that are not shared with these,
so that PYTHONPATH may point at one of them.
"""

import json
import sys
import warnings
from importlib import import_module

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    topic = import_module(sys.argv[1])
    sys.stdout.write(json.dumps(topic.measure(*json.loads(sys.argv[2]))))
