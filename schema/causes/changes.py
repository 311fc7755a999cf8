"""What differs between two dumps, phrase by phrase, and the one line that the phrases make."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from .sides import VERSIONS, Leaf, Pair, Side

# Phrases of a cause, and the one line that they make.

# The order in which a cause is told: first what a user sets, then what follows from it.
KINDS = (
    *("health", "reader", "device", "compiler", "argument", "donation", "flag"),
    *("remat", "loop", "saved", "clones", "type", "collective", "result", "renamed"),
    *("layout", "packing", "schedule", "program"),
)
# The line is shorter than this.
_LINE = 100
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Phrase:
    """What differs, in words: in full, and `short` for a line that lacks room."""

    kind: str
    text: str
    short: str = ""


# The figures moved, and the program did not.
READER_CHANGED = Phrase("reader", "reader changed: another memhouse read the same program")


def in_order(phrases: Sequence[Phrase]) -> list[Phrase]:
    """The first phrase of each kind, then the second ones and so on."""
    nth: dict[str, int] = {}
    placed = []
    for phrase in phrases:
        nth[phrase.kind] = nth.get(phrase.kind, -1) + 1
        placed.append((nth[phrase.kind], KINDS.index(phrase.kind), phrase))
    return [phrase for _, _, phrase in sorted(placed, key=lambda place: place[:2])]


def one_line(phrases: Sequence[Phrase]) -> str | None:
    """The phrases in one line; None if there are none.

    Where the line is too long, the longest phrases are shortened, and then the last ones are
    counted only.
    """
    if not phrases:
        return None
    for count in range(len(phrases), 0, -1):
        more = [f"{len(phrases) - count} more"] if count < len(phrases) else []
        for texts in _shortened(phrases[:count]):
            line = "; ".join([*texts, *more])
            if len(line) < _LINE:
                return line
    rest = "".join(f"; {text}" for text in more)
    return f"{texts[0][: _LINE - len(rest) - 2]}…{rest}"


def _shortened(phrases: Sequence[Phrase]) -> Iterator[list[str]]:
    """The phrases in full, and again with the longest one shortened, until all are."""
    texts = [phrase.text for phrase in phrases]
    yield texts
    for number in sorted(range(len(phrases)), key=lambda number: -len(texts[number])):
        short = phrases[number].short
        if short and len(short) < len(texts[number]):
            texts[number] = short
            yield texts


def size(amount: int) -> str:
    """Bytes to three digits: 89.1 MiB."""
    value, unit = float(abs(amount)), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"


def signed_size(amount: int) -> str:
    """The same with its sign."""
    return f"{'-' if amount < 0 else '+'}{size(amount)}"


# Which argument of one program is which of the other, and what arguments are called.

# `m['layers'][0].w` has the steps m, ['layers'], [0], .w.
_STEP = re.compile(r"\[[^]]*\]|[.]?[^.[]+")
_MOST_NAMES = 3


@dataclass(frozen=True)
class Matched:
    """The arguments of both sides: pairs of one argument, and what only one side has."""

    both: Sequence[tuple[Leaf, Leaf]]
    gone: Sequence[Leaf]
    new: Sequence[Leaf]


def match(a: Sequence[Leaf], b: Sequence[Leaf]) -> Matched:
    """Match arguments by name, else by number.

    Without names, and with unequal numbers, the shapes in order tell which are new.
    """
    if all(leaf.name for leaf in (*a, *b)):
        keys = [_keys((leaf.name, leaf.index) for leaf in side) for side in (a, b)]
    elif len(a) == len(b):
        keys = [_keys((leaf.number, leaf.index) for leaf in side) for side in (a, b)]
    else:
        keys = _by_shape(a, b)
    of_a, of_b = dict(zip(keys[0], a, strict=True)), dict(zip(keys[1], b, strict=True))
    return Matched(
        [(of_a[key], of_b[key]) for key in of_a if key in of_b],
        [of_a[key] for key in of_a if key not in of_b],
        [of_b[key] for key in of_b if key not in of_a],
    )


def _keys(names: Iterable[object]) -> list[tuple[object, int]]:
    """The names, with a number for those that occur more than once."""
    seen: dict[object, int] = {}
    keys = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        keys.append((name, seen[name]))
    return keys


def _by_shape(a: Sequence[Leaf], b: Sequence[Leaf]) -> list[list[tuple[object, int]]]:
    of_a, of_b = ([leaf.shape for leaf in side] for side in (a, b))
    keys: list[list[tuple[object, int]]] = [
        [("a", number) for number in range(len(a))],
        [("b", number) for number in range(len(b))],
    ]
    matcher = SequenceMatcher(None, of_a, of_b, autojunk=False)
    for kind, a_first, a_stop, b_first, b_stop in matcher.get_opcodes():
        if kind == "equal" or a_stop - a_first == b_stop - b_first:
            keys[1][b_first:b_stop] = keys[0][a_first:a_stop]
    return keys


def called(leaf: Leaf) -> str:
    """An argument's name, else its number."""
    return f"{leaf.name or f'argument {leaf.number}'}{leaf.index}"


def roots(leaves: Iterable[Leaf]) -> str:
    """What the arguments' names begin with, the most bytes first: m, v, p.

    If that is one name for several arguments, as much of it as they share.
    """
    paths, sizes = [], dict[str, int]()
    for leaf in leaves:
        paths.append(_STEP.findall(called(leaf)))
        sizes[paths[-1][0]] = sizes.get(paths[-1][0], 0) + leaf.size
    if len(sizes) == 1:
        shared = takewhile(lambda steps: len(set(steps)) == 1, zip(*paths, strict=False))
        return "".join(steps[0] for steps in shared)
    names = sorted(sizes, key=lambda name: -sizes[name])
    more = len(names) - _MOST_NAMES
    listed = ", ".join(names[:_MOST_NAMES])
    return listed if more <= 0 else f"{listed} and {more} more"


# What changed in the arguments: shapes, types, shardings, donation, new and gone ones.

_Change = list[tuple[Leaf, Leaf]]

# So many arguments with one change are named; more are counted.
_MOST_NAMED = 3
# New and gone arguments of as many bytes, up to this share, are the same in another structure.
_SAME_BYTES = 0.01
# Donated bytes are told from this share of the peak on.
_LEAST_DONATED = 0.001


def arguments(pair: Pair) -> list[Phrase]:
    """New, gone and changed arguments, the change of most bytes first."""
    found = match(pair.a.arguments, pair.b.arguments)
    groups: dict[object, _Change] = {}
    for a, b in found.both:
        if a.shape != b.shape or _is_resharded(pair, a, b):
            groups.setdefault(_change(a, b), []).append((a, b))
    resharded = [
        what
        for what, group in groups.items()
        if all(_is_resharded(pair, *leaves) for leaves in group)
    ]
    told = [
        (_bytes(groups[what]), _changed(groups[what], is_resharded=what in resharded))
        for what in groups
        if what not in resharded or len(resharded) == 1
    ]
    # Another mesh changes most arguments, each in its own way.
    if len(resharded) > 1:
        whole = [leaves for what in resharded for leaves in groups[what]]
        told.append((_bytes(whole), _resharded(whole)))
    told += _new_and_gone(pair, found)
    return [phrase for _, phrase in sorted(told, key=lambda row: -row[0])]


def _change(a: Leaf, b: Leaf) -> object:
    """What changed: the sharding alone, one size wherever it stands, the type, or more."""
    if a.shape == b.shape:
        return "sharding"
    if len(a.dimensions) != len(b.dimensions):
        return "other"
    sizes = {pair for pair in zip(a.dimensions, b.dimensions, strict=True) if pair[0] != pair[1]}
    if a.type == b.type and len(sizes) == 1:
        return sizes.pop()
    return "other" if sizes else (a.type, b.type)


def _bytes(change: Sequence[tuple[Leaf, Leaf]]) -> int:
    return sum(max(a.size, b.size) for a, b in change)


def _is_resharded(pair: Pair, a: Leaf, b: Leaf) -> bool:
    """Whether the sharding changed, but not only because there are more or fewer devices."""
    is_known = None not in (a.sharding, b.sharding) and not pair.differs("num_partitions")
    return is_known and a.sharding != b.sharding


def _changed(change: _Change, *, is_resharded: bool) -> Phrase:
    """One change of one or more arguments."""
    change = sorted(change, key=lambda leaves: -max(leaf.size for leaf in leaves))
    (a, b), count = change[0], len(change)
    if a.shape == b.shape:
        return _resharded(change)
    leaves = [leaf for leaf, _ in change]
    shapes = {(one.shape, other.shape) for one, other in change}
    if a.type != b.type and a.dimensions == b.dimensions and count > 1:
        text = short = f"{roots(leaves)}: {a.type} → {b.type} in {count} arguments"
    elif len(shapes) == 1 and count <= _MOST_NAMED:
        text = f"{', '.join(map(called, leaves))}: {a.shape} → {b.shape}"
        short = _of_dimensions(change) if count > 1 else text
    else:
        text = f"{called(a)}: {a.shape} → {b.shape} and {count - 1} more"
        short = _of_dimensions(change)
    suffix = ", sharded otherwise" if is_resharded else ""
    return Phrase("argument", f"{text}{suffix}", f"{short}{suffix}")


def _of_dimensions(change: _Change) -> str:
    """The change in few words: m, p: 4 → 6 in 27 arguments."""
    a, b = change[0]
    if len(a.dimensions) != len(b.dimensions):
        changes = [f"{a.shape} → {b.shape}"]
    else:
        pairs = [(a.type, b.type), *zip(a.dimensions, b.dimensions, strict=True)]
        changes = list(dict.fromkeys(f"{one} → {other}" for one, other in pairs if one != other))
    count = f" in {len(change)} arguments" if len(change) > 1 else ""
    return f"{roots(leaf for leaf, _ in change)}: {', '.join(changes)}{count}"


def _resharded(change: _Change) -> Phrase:
    """Another sharding of one or more arguments, with the shapes of the largest."""
    leaves = [a for a, _ in change]
    if len(leaves) <= _MOST_NAMED:
        text = f"{', '.join(map(called, leaves))}: sharded otherwise"
    else:
        text = f"{roots(leaves)}: sharded otherwise in {len(leaves)} arguments"
    a, b = max(change, key=lambda pair: max(leaf.size for leaf in pair))
    shapes = "" if a.shape == b.shape else f", {called(a)} {a.shape} → {b.shape}"
    return Phrase("argument", f"{text}{shapes}", text)


def _new_and_gone(pair: Pair, found: Matched) -> list[tuple[int, Phrase]]:
    gone, new = found.gone, found.new
    gone_bytes, new_bytes = (sum(leaf.size for leaf in side) for side in (gone, new))
    most = max(gone_bytes, new_bytes)
    if gone and [leaf.shape for leaf in gone] == [leaf.shape for leaf in new]:
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        text = f"renamed arguments: {called(gone[0])} → {called(new[0])}{more}"
        return [(most, Phrase("renamed", text))]
    if gone and new and abs(new_bytes - gone_bytes) <= _SAME_BYTES * most:
        counts = f"{len(pair.a.arguments)} → {len(pair.b.arguments)}"
        return [(most, Phrase("argument", f"arguments regrouped: {counts}, same bytes"))]
    told = []
    for leaves, total, one, many in (
        (new, new_bytes, "new argument {}", "{} new arguments"),
        (gone, gone_bytes, "argument {} gone", "{} arguments gone"),
    ):
        if len(leaves) == 1:
            text = f"{one.format(called(leaves[0]))}: {leaves[0].shape}"
            told.append((total, Phrase("argument", text)))
        elif leaves:
            text = many.format(len(leaves))
            names = roots(leaves)
            told.append((total, Phrase("argument", f"{text}: {names}, {size(total)}", text)))
    return told


def donation(pair: Pair) -> list[Phrase]:
    """The bytes of arguments that results may no longer take, or may now.

    XLA exchanges arguments of one shape from one compilation to the next, so only the sums of
    both tell.
    """
    lost, gained = [], []
    for a, b in match(pair.a.arguments, pair.b.arguments).both:
        if a.donated and not b.donated:
            lost.append((a, a.donated))
        elif b.donated and not a.donated:
            gained.append((b, b.donated))
    net = sum(amount for _, amount in gained) - sum(amount for _, amount in lost)
    if not net or abs(net) < _LEAST_DONATED * pair.peak:
        return []
    text = f"{'donated now' if net > 0 else 'donation lost'}: {size(net)}"
    changed = gained if net > 0 else lost
    return [Phrase("donation", f"{text} of {roots(leaf for leaf, _ in changed)}", text)]


def results(pair: Pair) -> list[Phrase]:
    """The results' shapes, which follow the arguments' where those changed."""
    before, after = (
        sorted(leaf.shape for leaf in side) for side in (pair.a.results, pair.b.results)
    )
    if before == after:
        # Another order of the same results.
        return []
    if len(before) != len(after):
        return [Phrase("result", f"results: {len(before)} → {len(after)} arrays")]
    found = match(pair.a.results, pair.b.results)
    changed = [(a, b) for a, b in found.both if a.shape != b.shape]
    a, b = max(changed, key=lambda leaves: max(leaf.size for leaf in leaves))
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return [Phrase("result", f"result{a.index}: {a.shape} → {b.shape}{more}")]


def layouts(pair: Pair) -> list[Phrase]:
    """Arguments of one shape in another layout."""
    found = match(pair.a.arguments, pair.b.arguments).both
    changed = [(a, b) for a, b in found if a.shape == b.shape and a.layout != b.layout]
    if not changed:
        return []
    a, b = max(changed, key=lambda leaves: leaves[0].size)
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    text = f"layout of {called(a)}: {_layout(a)} → {_layout(b)}{more}"
    return [Phrase("layout", text, f"layout of {called(a)}{more}")]


def _layout(leaf: Leaf) -> str:
    return leaf.layout.removeprefix(leaf.shape) or "{}"


# What the program does otherwise: what it computes again, keeps, computes in, packs.

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


# What a user sets besides the program: its health, the device, the compiler, flags, names.

_LISTED_FLAGS = 2
# Some versions of libtpu print a number for the device's name: it names no other device.
_SCRAMBLED = re.compile(r"[0-9a-f]{8,}\b")
_STATUS = {"failed": "failed", "partial": "is partial"}
_GRADES = {1: "figures are estimated", 2: "figures are estimated without a schedule"}


def health(pair: Pair) -> list[Phrase]:
    """Whether one side failed, ran out of memory or is known in part only."""
    a, b = pair.a.dump, pair.b.dump
    told = []
    if a["oom"] != b["oom"]:
        told.append(
            "XLA runs out of memory now" if b["oom"] else "XLA no longer runs out of memory"
        )
    if a["status"] != b["status"]:
        told += [f"the dump before {_STATUS[a['status']]}"] if a["status"] in _STATUS else []
        told += [f"this dump {_STATUS[b['status']]}"] if b["status"] in _STATUS else []
    if pair.has_modules and a["grade"] != b["grade"]:
        told.append(_GRADES.get(b["grade"], "figures were estimated before"))
    return [Phrase("health", text) for text in told]


def device(pair: Pair) -> list[Phrase]:
    """Another device, or another number of them."""
    a, b = pair.a.dump, pair.b.dump
    names = (a["device_kind"], b["device_kind"])
    # Another reader may have another name for one device.
    is_other = pair.differs("device_kind") and not pair.differs("reader_version")
    if is_other and not any(map(_SCRAMBLED.match, names)):
        return [Phrase("device", f"device {a['device_kind']} → {b['device_kind']}")]
    if pair.differs("num_partitions"):
        return [Phrase("device", f"{a['num_partitions']} → {b['num_partitions']} partitions")]
    return []


def compiler_and_flags(pair: Pair) -> list[Phrase]:
    """Another compiler, else the flags that differ.

    Another compiler has other defaults, so its flags are only counted.
    """
    told = []
    if pair.differs("compiler"):
        told.append(f"compiler {pair.a.dump['compiler']} → {pair.b.dump['compiler']}")
    told += _versions(pair)
    if told:
        count = len(pair.flags)
        counted = f" ({count} {'flag' if count == 1 else 'flags'})" if count else ""
        return [Phrase("compiler", f"{', '.join(told)}{counted}", told[0])]
    if not pair.flags:
        return []
    listed = [
        f"{flag.name} {'unset' if flag.a is None else flag.a} → "
        f"{'unset' if flag.b is None else flag.b}"
        for flag in pair.flags[:_LISTED_FLAGS]
    ]
    names = [flag.name for flag in pair.flags]
    if len(names) == 1:
        return [Phrase("flag", f"flag {listed[0]}")]
    text = f"{len(names)} flags: {', '.join(listed)}"
    more = ", …" if len(names) > _LISTED_FLAGS else ""
    return [Phrase("flag", f"{text}{more}", f"{len(names)} flags: {listed[0]}, …")]


def _versions(pair: Pair) -> list[str]:
    """The versions that the runs are labelled with, where they differ."""
    told: list[str] = []
    for key in VERSIONS:
        a, b = pair.a.versions.get(key), pair.b.versions.get(key)
        if None in (a, b) or a == b or (key == "libtpu" and pair.differs("compiler")):
            continue
        # jaxlib mostly has the version of jax.
        if key == "jaxlib" and told == [f"jax {a} → {b}"]:
            continue
        told.append(f"{key} {a} → {b}")
    return told


def renamed(pair: Pair) -> list[Phrase]:
    """Another name of what is known to be the same program, or to take the same arguments."""
    a, b = pair.a.dump, pair.b.dump
    is_one = a["run_id"] != b["run_id"] and a["platform"] == b["platform"]
    is_one = is_one and any(
        a[key] is not None and a[key] == b[key]
        for key in ("program_id", "entry_signature", "skeleton_id")
    )
    if not is_one:
        return []
    names = [a[key] for key in ("workload", "module_name") if a[key] != b[key]]
    return [Phrase("renamed", f"renamed from {'/'.join(names)}")] if names else []
