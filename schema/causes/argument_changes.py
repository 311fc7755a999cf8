"""What changed in the arguments: shapes, types, shardings, donation, new and gone ones."""

from collections.abc import Sequence

from .argument_pairs import Matched, called, match, roots
from .phrases import Phrase, size
from .sides import Leaf, Pair

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
