"""Sizes and names as a person reads them: what every room shows alike."""

UNITS = {"B": 1} | {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTP", 1)}


def unit_for(size: float) -> str:
    """The largest unit that the size has at least one of.

    Sizes are shown with two digits: 1023.999 KiB would read 1024.00 KiB, and is 1.00 MiB.
    """
    fitting = [name for name, unit in UNITS.items() if abs(size) >= unit * (1 - 0.005 / 1024)]
    return fitting[-1] if fitting else "B"


def human_bytes(size: int | float) -> str:
    """A size as a person reads it: 306.98 MiB."""
    unit = unit_for(size)
    return f"{size:.0f} B" if unit == "B" else f"{size / UNITS[unit]:.2f} {unit}"


def one_line(text: str) -> str:
    """A text, a name say, whose control characters do not reach the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
