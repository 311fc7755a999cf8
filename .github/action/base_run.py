"""Prints the run that most programs are held against: `memhouse check --format json` is on stdin.

Prints nothing if there is no such run.
"""

import json
import sys
from collections import Counter

held = Counter(row["baseline_run"] for row in json.load(sys.stdin) if row["baseline_run"])
for run, _ in held.most_common(1):
    print(run)
