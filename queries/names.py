"""The names of all commands, and which of them are questions to a warehouse.

A question is the function of its name in the file of its name in this folder; the other commands
are written by hand, in `cli/commands/`.
"""

# The panels of `memhouse --help`, in order.
GROUPS = {
    "Fill a warehouse": ("demo", "record", "fit", "ingest", "doctor"),
    "Ask about a module": (
        "runs",
        "modules",
        "peaks",
        "owners",
        "buffers",
        "timeline",
        "saved",
        "donations",
        "kernels",
        "passes",
        "fragmentation",
        "oom",
        "advise",
    ),
    "Follow the history": ("trends", "since", "diff", "check", "label", "log"),
    "Query and share": ("report", "sql", "shell", "mcp", "views", "tables", "export"),
    "Look after a warehouse": ("verify", "prune", "compact", "merge", "publish"),
}
# They have a grammar of their own, ask something else than a warehouse, or do not ask.
BY_HAND = {
    *("demo", "record", "fit", "ingest", "doctor"),
    *("oom", "label"),
    *("report", "sql", "shell", "mcp", "views", "export"),
    *("compact", "merge", "publish"),
}
QUESTIONS = tuple(name for names in GROUPS.values() for name in names if name not in BY_HAND)
