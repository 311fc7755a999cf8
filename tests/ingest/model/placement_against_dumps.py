"""Hold the plain placement against CPU dumps."""

import re
from pathlib import Path

from . import against_dumps, plain_placement, plain_rules, plain_text

LARGEST = 400_000
ALLOCATION = re.compile(r"^allocation (\d+): size (\d+)(.*)$")
VALUE = re.compile(
    r"^ value: <\d+ (\S+?)(\{[\d,]*\})?(?: \(phi\))? @-?\d+> \(size=(\d+),offset=(\d+)\)"
)


def read_assignment(path):
    """The sizes of values, the fixed bytes, and where each temporary value lies."""
    sizes, places, fixed, temporary = {}, {}, 0, False
    for line in path.read_text().splitlines():
        if match := ALLOCATION.match(line):
            kind = re.sub(r"\|.*?\|", "", match[3])
            main = "color" not in kind
            temporary = main and "preallocated-temp" in kind
            if main and not temporary and "thread-local" not in kind:
                fixed += int(match[2])
        elif match := VALUE.match(line):
            value = (match[1], against_dumps.index_of(match[2]))
            sizes[value] = int(match[3])
            if temporary:
                places[value] = (int(match[4]), int(match[4]) + int(match[3]))
    return sizes, fixed, places


def true_peak(fixed, places, ranges):
    """The most bytes that are live at one time, by XLA's own offsets."""
    most = 0
    for time in {start for start, _ in ranges.values()}:
        end, total = 0, 0
        live = [
            p for v, p in places.items() if v in ranges and ranges[v][0] <= time <= ranges[v][1]
        ]
        for low, high in sorted(live):
            total += max(0, high - max(low, end))
            end = max(end, high)
        most = max(most, total)
    return fixed + most


def compare(path):
    """(fixed bytes, peak) by the rules and by the dump; none if it cannot be compared."""
    assignment = Path(str(path)[: -len(".txt")] + "-buffer-assignment.txt")
    if path.stat().st_size > LARGEST or not assignment.exists():
        return None
    text = path.read_text()
    sizes, fixed, places = read_assignment(assignment)
    try:
        ranges = plain_rules.liveness(text).live_ranges
        mine = plain_placement.peak(text, sizes)
    except plain_text.NoRuleError:
        return None
    return mine, (fixed, true_peak(fixed, places, ranges))
