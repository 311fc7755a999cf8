"""The metrics: the columns of `module_memory` that have a history.

`tables.py` declares them; here they are read from a file that is generated from it, because it
imports SQLAlchemy, which takes as long as a short query.
"""

import json
from pathlib import Path
from typing import NamedTuple


class Metric(NamedTuple):
    """A metric: `better` is lower or higher; `regresses` if `regressions` tells of its growth."""

    name: str
    meaning: str
    better: str
    regresses: bool


# By name, in the order in which they are shown.
METRICS = {
    row["name"]: Metric(**row)
    for row in json.loads((Path(__file__).parent / "metrics.json").read_text())
}
