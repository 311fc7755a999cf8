"""Results as JSON on stdout."""

import json
import sys
from typing import Any

import pyarrow as pa

from ...queries.encoders import json_parts, plain
from .text import results


def print_json_rows(rows: pa.Table) -> None:
    """Print rows as `memhouse export` writes them."""
    sys.stdout.writelines(json_parts(rows))


def print_json(value: Any) -> None:
    """Print a value of lists and objects."""
    with results():
        json.dump(plain(value), sys.stdout, indent=1, allow_nan=False)
        sys.stdout.write("\n")
