"""Pairs of programs, before and after one change, that advice is held against."""

from .registry import PAIRS, SAME

__all__ = [
    "PAIRS",
    "SAME",
    "arrays",
    "checkpoints",
    "decoding",
    "host",
    "right",
    "scans",
    "shapes",
    "states",
    "training",
]
