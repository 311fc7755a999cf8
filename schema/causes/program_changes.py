"""What the program does otherwise: what it computes again, keeps, computes in, packs."""

import re

from .phrases import Phrase, signed_size, size
from .sides import Pair, Side

# A change of what is saved for the backward pass is told from this share of the peak on.
_LEAST_SAVED = 0.02
# A line is named if it has this share of the change.
_LEAST_OF_CHANGE = 0.2
# XLA's own rematerialisation is told if the instructions change by so many, and by this share.
_LEAST_CLONES, _LEAST_CLONES_SHARE = 3, 0.2
# A type is told if it comes to this share of the bytes, or goes, and is as good as absent else;
# or if it was the type of so many products, and is of none.
_PRESENT, _ABSENT = 0.05, 0.01
_MOST_PRODUCTS = 0.5
_COUNTING_TYPES = frozenset({"pred", "s32", "s64", "u32", "u64"})
# Collectives are told from this share of the peak on.
_LEAST_COLLECTIVE = 0.03
# Fragmentation is told from this share of the total on.
_LEAST_PACKING = 0.005
_COLLECTIVE = re.compile(
    r"(all-gather|all-reduce|(ragged-)?all-to-all|reduce-scatter|collective-(permute|broadcast))"
    r"(-start)?$"
)


def rematerialised(pair: Pair) -> list[Phrase]:
    """Whether JAX computes activations again in the backward pass, and which operations."""
    a, b = pair.a.amount("recomputed"), pair.b.amount("recomputed")
    if not a and not b:
        return []
    if not a or not b:
        text = "rematerialised now" if b else "no longer rematerialised"
        return [Phrase("remat", f"{text} (jax.checkpoint)", text)]
    return _policy(pair)


def _policy(pair: Pair) -> list[Phrase]:
    """Which costly operations another checkpoint policy computes again.

    The share of an operation's forward instructions counts, for more layers are no policy. The
    last quarter does not: what `dots_with_no_batch_dims_saveable` leaves, say.
    """
    told: dict[str, list[str]] = {}
    names = {*pair.a.traits.get("recomputed", {}), *pair.b.traits.get("recomputed", {})} - {""}
    for name in sorted(names):
        a, b = (_recomputed_share(side, name) for side in (pair.a, pair.b))
        if b <= a / 4:
            told.setdefault("no longer recomputed", []).append(name)
        elif a <= b / 4:
            told.setdefault("recomputed now", []).append(name)
        elif b <= a / 2:
            told.setdefault("recomputed less", []).append(name)
        elif a <= b / 2:
            told.setdefault("recomputed more", []).append(name)
    if not told:
        return []
    change = ", ".join(f"{', '.join(operations)} {how}" for how, operations in told.items())
    return [Phrase("remat", f"checkpoint policy: {change}", change)]


def _recomputed_share(side: Side, name: str) -> float:
    return side.amount("recomputed", name) / max(side.amount("forward", name), 1)


def saved(pair: Pair) -> list[Phrase]:
    """What the forward pass keeps for the backward pass, with the line of most of the change."""
    change = pair.b.amount("saved") - pair.a.amount("saved")
    if not change or abs(change) < _LEAST_SAVED * pair.peak:
        return []
    text = f"{size(change)} {'more' if change > 0 else 'less'} saved for backward"
    line, amount = _largest_line(pair, "saved", 1 if change > 0 else -1)
    named = f" ({line})" if abs(amount) >= _LEAST_OF_CHANGE * abs(change) else ""
    return [Phrase("saved", f"{text}{named}", text)]


def _largest_line(pair: Pair, trait: str, sign: int = 0) -> tuple[str, int]:
    """The line whose bytes change most, in the direction of `sign` if that is not 0.

    Lines above which a comment was added have another number on each side. Where lines of a
    file are only on one side, equally many on both, they are taken for the same in order.
    """
    a, b = (dict(side.traits.get(trait, {})) for side in (pair.a, pair.b))
    for before, after in _moved(a.keys() - b.keys(), b.keys() - a.keys()):
        a[after] = a.pop(before)
    changes = {line: b.get(line, 0) - a.get(line, 0) for line in {*a, *b} - {""}}
    chosen = {line: change for line, change in changes.items() if change * sign >= 0}
    if not chosen:
        return "", 0
    line = max(sorted(chosen), key=lambda line: abs(chosen[line]))
    return line, chosen[line]


def _moved(a: set[str], b: set[str]) -> list[tuple[str, str]]:
    """Lines of one file that are on one side only, in order, if there are equally many."""
    pairs: list[tuple[str, str]] = []
    for file in sorted({line.rpartition(":")[0] for line in a}):
        before, after = (
            sorted(
                (line for line in side if line.rpartition(":")[0] == file and file),
                key=lambda line: int(line.rpartition(":")[2]),
            )
            for side in (a, b)
        )
        if len(before) == len(after):
            pairs += zip(before, after, strict=True)
    return pairs


def clones(pair: Pair) -> list[Phrase]:
    """What XLA itself computes again to save memory."""
    a, b = pair.a.amount("clones"), pair.b.amount("clones")
    if bool(a) != bool(b):
        text = f"XLA recomputes {b} instructions now" if b else "XLA no longer recomputes"
        return [Phrase("clones", text)]
    if abs(b - a) > max(_LEAST_CLONES, _LEAST_CLONES_SHARE * max(a, b)):
        return [Phrase("clones", f"XLA recomputes {a} → {b} instructions")]
    return []


def loops(pair: Pair) -> list[Phrase]:
    """Whether the framework's loops, such as a scan over layers, come or go."""
    a, b = pair.a.amount("loops"), pair.b.amount("loops")
    if bool(a) == bool(b):
        return []
    return [Phrase("loop", f"{b} loops now (while)" if b else f"{a} loops unrolled (while)")]


def types(pair: Pair) -> list[Phrase]:
    """An element type in which a part of the program is computed on one side alone."""
    gone, new = _other_types(pair, "computed", _PRESENT, _ABSENT)
    if not (gone or new):
        # A compiler keeps copies in other types, so the bytes may not tell; products do.
        gone, new = _other_types(pair, "product", _MOST_PRODUCTS, 0)
    if gone and new:
        return [Phrase("type", f"computes in {new}, no longer in {gone}")]
    if new:
        return [Phrase("type", f"computes in {new} now")]
    return [Phrase("type", f"no longer computes in {gone}")] if gone else []


def _other_types(
    pair: Pair, trait: str, present: float, absent: float
) -> tuple[str | None, str | None]:
    """The largest type that only the first side has, and that only the second one has."""
    a, b = (_shares(side, trait) for side in (pair.a, pair.b))
    gone, new = _only_in(a, b, present, absent), _only_in(b, a, present, absent)
    if gone and not new:
        new = max((name for name in b if b[name] > a.get(name, 0)), key=b.__getitem__, default=None)
        new = new if new is not None and trait == "product" else None
    return gone, new


def _only_in(
    one: dict[str, float], other: dict[str, float], present: float, absent: float
) -> str | None:
    """The type of the largest share of those that the other side lacks."""
    found = [name for name in sorted(one) if one[name] >= present and other.get(name, 0) <= absent]
    return max(found, key=lambda name: one[name], default=None)


def _shares(side: Side, trait: str) -> dict[str, float]:
    amounts = side.traits.get(trait, {})
    total = sum(amounts.values())
    floats = (name for name in amounts if name not in _COUNTING_TYPES)
    return {name: amounts[name] / total for name in floats}


def collectives(pair: Pair) -> list[Phrase]:
    """What collectives hold at the peak, if other collectives are there."""
    a, b = (side.traits.get("peak_collective", {}) for side in (pair.a, pair.b))
    changes = {name: b.get(name, 0) - a.get(name, 0) for name in {*a, *b}}
    change = sum(changes.values())
    if (
        not change
        or abs(change) < _LEAST_COLLECTIVE * pair.peak
        or change * pair.change("peak_bytes") <= 0
        or pair.a.amount("collectives") == pair.b.amount("collectives")
    ):
        return []
    name = max(sorted(changes), key=lambda name: abs(changes[name]))
    text = f"{size(change)} {'more' if change > 0 else 'less'} in collectives at the peak"
    return [Phrase("collective", f"{text} ({name})", text)]


def packing(pair: Pair) -> list[Phrase]:
    """What XLA's packing wastes, if the peak does not say the same."""
    change = pair.change("fragmentation_bytes")
    total = max(pair.a.dump["total_bytes"] or 0, pair.b.dump["total_bytes"] or 0)
    if abs(change) < _LEAST_PACKING * total or 2 * abs(pair.change("peak_bytes")) >= abs(change):
        return []
    same = " above the same bound" if not pair.change("live_bound_bytes") else ""
    return [Phrase("packing", f"packing: {signed_size(change)}{same}")]


def schedule(pair: Pair) -> list[Phrase]:
    """The same instructions in other layouts, or else in another order."""
    if not _has_equal(pair, "program_shapes"):
        return []
    if _has_other(pair, "program_layouts"):
        return [Phrase("layout", "other layouts of the same instructions")]
    if _has_other(pair, "program_order"):
        return [Phrase("schedule", "the same instructions in another order", "another schedule")]
    return []


def has_same_instructions(pair: Pair) -> bool:
    """Whether both programs are known to have the same instructions, layouts and order aside."""
    return _has_equal(pair, "program_shapes")


def _has_equal(pair: Pair, trait: str) -> bool:
    return pair.a.amount(trait) == pair.b.amount(trait) != 0


def _has_other(pair: Pair, trait: str) -> bool:
    """Whether a hash is known of both programs, and is another."""
    a, b = pair.a.amount(trait), pair.b.amount(trait)
    return bool(a and b) and a != b


def program(pair: Pair) -> list[Phrase]:
    """Where the programs differ, for want of anything better to say."""
    line, change = _largest_line(pair, "peak")
    at_peak = pair.change("peak_bytes")
    # A line that changed otherwise than the peak only changed places with others.
    if change * at_peak > 0 and _explains(change, at_peak) and pair.has_figures:
        return [Phrase("program", f"{line}: {signed_size(change)} at the peak")]
    a, b = (side.traits.get("operation", {}) for side in (pair.a, pair.b))
    changes = {name: b.get(name, 0) - a.get(name, 0) for name in {*a, *b}}
    if pair.a.amount("collectives") != pair.b.amount("collectives"):
        among = [name for name in sorted(changes) if _COLLECTIVE.match(name) and changes[name]]
        if among:
            name = max(among, key=lambda name: abs(changes[name]))
            counts = f"{a.get(name, 0)} → {b.get(name, 0)}"
            return [Phrase("program", f"{name.removesuffix('-start')}: {counts} instructions")]
    more, fewer = (sum(abs(c) for c in changes.values() if c * sign > 0) for sign in (1, -1))
    if more or fewer:
        return [Phrase("program", f"+{more}/-{fewer} instructions")]
    if pair.a.amount("program_shapes") != pair.b.amount("program_shapes"):
        return [Phrase("program", "other shapes of as many instructions")]
    if pair.differs("program_id"):
        return [Phrase("program", "the same instructions at other addresses")]
    return []


def _explains(change: int, whole: int) -> bool:
    return _LEAST_OF_CHANGE * abs(whole) <= abs(change) <= 2 * abs(whole)
