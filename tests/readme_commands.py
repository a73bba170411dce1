"""Run by `test_readme.py`: commands of `tusk`, each in a fork. Standard input has a line of JSON for each.

Everything is imported once, here; trainings are validated on fewer images. The first that fails ends it.
"""

import functools
import json
import sys

from tests import forks
from tusk.training import start

if __name__ == "__main__":
    forks.warm_up()
    start.sample_validation_images = functools.partial(start.sample_validation_images, count=20)
    for line in sys.stdin:
        words = json.loads(line)
        code = forks.end(forks.start(words, errors="/dev/stderr"))
        if code != 0:
            sys.exit(f"{' '.join(words)}: {code}")
