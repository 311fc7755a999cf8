"""The metrics: the columns of `module_memory` that have a history.

They have a file of their own because `tables.py` imports SQLAlchemy, which takes as long as
a short query.
"""

# In the order in which they are shown.
METRICS = (
    "peak_bytes",
    "total_bytes",
    "argument_bytes",
    "output_bytes",
    "alias_bytes",
    "constant_bytes",
    "thread_local_bytes",
    "temp_bytes",
    "fragmentation_bytes",
    "padding_bytes",
    "live_bound_bytes",
    "packing_bytes",
)
# All other metrics are better if they are lower.
BETTER_HIGHER = frozenset({"alias_bytes"})
