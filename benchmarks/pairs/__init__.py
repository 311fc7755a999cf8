"""Pairs of programs, before and after one change, that advice is held against."""

from . import (
    arrays,
    checkpoints,
    decoding,
    edits,
    families,
    host,
    right,
    scans,
    shapes,
    states,
    training,
    unseen,
)
from .registry import PAIRS, SAME

__all__ = [
    "PAIRS",
    "SAME",
    "arrays",
    "checkpoints",
    "decoding",
    "edits",
    "families",
    "host",
    "right",
    "scans",
    "shapes",
    "states",
    "training",
    "unseen",
]
