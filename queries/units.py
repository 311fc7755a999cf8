"""Units of bytes, for every place that reads or shows a size."""

UNITS = {"B": 1} | {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTP", 1)}


def unit_for(size: float) -> str:
    """The largest unit that the size has at least one of.

    Sizes are shown with two digits: 1023.999 KiB would read 1024.00 KiB, and is 1.00 MiB.
    """
    fitting = [name for name, unit in UNITS.items() if abs(size) >= unit * (1 - 0.005 / 1024)]
    return fitting[-1] if fitting else "B"
