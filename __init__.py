"""memhouse: a SQL warehouse for the memory dumps of the XLA compiler."""

__version__ = "0.1.0"
