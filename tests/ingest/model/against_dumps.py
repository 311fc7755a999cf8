"""Hold the plain rules against dumps."""

import re
from pathlib import Path

from . import plain_rules, plain_text

LARGEST = 2_000_000
NAMED = re.compile(r"^<\d+ (\S+?)(\{[\d,]*\})?( \(phi\))? @-?\d+>")
RANGE = re.compile(r"^\s+(\S+?)\{([\d,]*)\}:(\d+)-(\d+)$")
PLACED = re.compile(
    r"^ value: <\d+ (\S+?)(\{[\d,]*\})?( \(phi\))? @-?\d+> \(size=\d+,offset=(\d+)\)"
)


def index_of(text):
    """`{1,0}` as an index; nothing stands for all of it."""
    return tuple(int(part) for part in (text or "").strip(" {}").split(",") if part)


def read_values(lines):
    """What `Used values:` says: positions, uses and phis."""
    positions, uses, phis, value, part = {}, {}, set(), None, None
    for line in lines:
        if match := NAMED.match(line):
            value, part = (match[1], index_of(match[2])), None
            positions[value], uses[value] = set(), set()
            if match[3]:
                phis.add(value)
        elif value is None:
            continue
        elif line.startswith(" positions:"):
            part = positions
        elif line.startswith(" uses:"):
            part = uses
        elif line.startswith(" from instruction"):
            value, part = value, None
            if rest := re.search(r"(<\d+ \S+(?: \(phi\))? @-?\d+>)$", line):
                more = read_values([rest[1]])
                positions |= more[0]
                uses |= more[1]
                phis |= more[2]
                value = next(iter(more[0]))
        elif part is positions and line.strip():
            name, _, index = line.strip().partition(" ")
            positions[value].add((name, index_of(index)))
        elif part is uses and (match := re.match(r"  (\S+), operand (\d+)( \{.*\})?$", line)):
            uses[value].add((match[1], int(match[2]), index_of(match[3])))
    return positions, uses, phis


def read_ranges(lines):
    """The schedule and the live ranges."""
    schedule, ranges = [], {}
    for line in lines:
        if match := re.match(r"^    \d+:(\S+)$", line):
            schedule.append(match[1])
        elif match := RANGE.match(line):
            ranges[match[1], index_of(match[2])] = (int(match[3]), int(match[4]))
    return schedule, ranges


def read_places(lines):
    """Where each value lies, and which lie in allocations of threads or are constants."""
    places, allocation, kind = {}, None, ""
    for line in lines:
        if match := re.match(r"^allocation (\d+):", line):
            allocation = int(match[1])
            kind = ""
            if "thread-local" in line:
                kind = "thread-local"
            elif "constant" in re.sub(r"\|.*?\|", "", line):
                kind = "constant"
        elif match := PLACED.match(line):
            places[match[1], index_of(match[2])] = (allocation, int(match[4]), kind)
        elif line.startswith(("Total bytes", "Used values", "HloLiveRange")):
            break
    return places


def read_dump(path):
    """All texts of a module, as one list of lines for each kind of text."""
    stem = str(path)[: -len(".txt")]
    assignment = Path(stem + "-buffer-assignment.txt")
    if not assignment.exists():
        return None
    first = assignment.read_text().splitlines()
    values = Path(stem + "-buffer-assignment-values.txt")
    ranges = Path(stem + "-live-range.txt")
    second = values.read_text().splitlines() if values.exists() else first
    third = ranges.read_text().splitlines() if ranges.exists() else first
    return read_places(first), *read_values(second), *read_ranges(third)


class Tally:
    """The first differences of each kind."""

    def __init__(self):
        self.notes = []

    def compare(self, kind, mine, theirs):
        """Compare two mappings; keep a note of the first differences."""
        keys = mine.keys() | theirs.keys()
        wrong = [key for key in keys if mine.get(key) != theirs.get(key)]
        for key in sorted(wrong)[:4]:
            self.notes.append(f"  {kind} {key}: rules {mine.get(key)}, dump {theirs.get(key)}")


def compare(path, tally):
    """Compare one module; say what it was if it was not compared."""
    text = path.read_text()
    dump = read_dump(path)
    if dump is None or len(text) > LARGEST:
        return "not compared"
    places, positions, uses, phis, schedule, ranges = dump
    late = bool(found := re.search(r"\.cl_(\d+)\.", path.name)) and int(found[1]) > 10**9
    try:
        mine = plain_rules.liveness(text, late)
    except plain_text.NoRuleError as error:
        return str(error)
    local = {value for value, place in places.items() if place[2] == "thread-local"}
    constants = {value for value, place in places.items() if place[2] == "constant"}
    if schedule:
        tally.compare("schedule", dict(enumerate(mine.schedule)), dict(enumerate(schedule)))
        skipped = constants - ranges.keys()
        rules = {k: v for k, v in mine.live_ranges.items() if k not in skipped}
        tally.compare("live range", rules, ranges)
    # Values of regions that only fusions reach are in some dumps and not in others.
    present = {v for v in mine.values if v in positions}
    scheduled = {v for v in mine.values if v[0] in set(mine.schedule)}
    there = dict.fromkeys(present | scheduled, True)
    tally.compare("value", there, dict.fromkeys(positions, True))
    tally.compare("phi", dict.fromkeys(mine.phis, True), dict.fromkeys(phis, True))
    tally.compare("positions", {v: mine.positions[v] for v in present}, positions)
    tally.compare("uses", {v: mine.uses.get(v, set()) for v in present}, uses)
    shared = {}
    for members in mine.alias_sets:
        known = {places[v][:2] for v in members if v in places and v not in local}
        if len(members) > 1:
            shared[min(members)] = known
    for value, known in shared.items():
        if len(known) > 1:
            tally.notes.append(f"  alias set of {value} lies at {known}")
    return ""
