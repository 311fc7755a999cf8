"""Rows as CSV on stdout."""

import sys

import pyarrow as pa

from ...queries.encoders import csv_parts


def print_csv(rows: pa.Table) -> None:
    """Print rows as `memhouse export` writes them."""
    sys.stdout.writelines(csv_parts(rows))
