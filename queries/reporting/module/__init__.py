"""The report of one module: what fills its memory, when, and whose it is."""
