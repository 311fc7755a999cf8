"""What differs between two dumps, phrase by phrase, and the one line that the phrases make."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import accumulate, takewhile

from ...xla.opcodes import COLLECTIVES, unnumbered
from .differing_pass import first_difference
from .ledger import (
    Difference,
    Explains,
    any_of,
    of_category,
    of_lines,
    of_owners,
    of_residuals,
    of_step,
    of_temps,
    of_type,
    resized,
    scaled,
)
from .sides import VERSIONS, Leaf, Pair, Side

# Phrases of a cause, and the one line that they make.

# The order in which facts are told that have no bytes of the peak: first what a user sets.
KINDS = (
    *("health", "reader", "device", "compiler", "flag", "pass", "layers", "argument", "donation"),
    *("remat", "random", "loop", "clones", "type", "collective", "result", "renamed"),
    *("layout", "packing", "schedule", "line", "moved", "program", "remainder"),
)
# These stand before all bytes: they may be the reason of any.
_SET = KINDS[:6]
# The line is shorter than this.
_LINE = 100
# What has a smaller share of the change, or of the largest term, is only counted in the line.
_LEAST_OF_LINE = 0.05
_LEAST_LEFT_OUT = 0.02
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Phrase:
    """What differs, in words: in full, and `short` for a line that lacks room.

    explains: which differences of the peaks follow from it; ratios: how many times larger others
    are that follow too, if nothing else explains them; change: the bytes of both, None if there
    are none; source and role: the line and role of most of them.
    """

    kind: str
    text: str
    short: str = ""
    explains: Explains | None = field(default=None, compare=False)
    ratios: frozenset[float] = frozenset()
    change: int | None = None
    source: str | None = None
    role: str | None = None


# The figures moved, and the program did not.
READER_CHANGED = Phrase("reader", "reader changed: another memhouse read the same program")


def in_order(phrases: Sequence[Phrase]) -> list[Phrase]:
    """What is set first, then what has bytes, the most first, and then the rest by kind."""

    def place(phrase: Phrase) -> tuple[int, int, int]:
        kind = KINDS.index(phrase.kind)
        if phrase.kind in _SET:
            return 0, kind, 0
        if phrase.kind == "remainder":
            return 3, 0, 0
        return (1, -abs(phrase.change), kind) if phrase.change else (2, kind, 0)

    return sorted(phrases, key=place)


def one_line(phrases: Sequence[Phrase]) -> str | None:
    """The phrases in one line; None if there are none.

    Small terms are counted only. Where the line is too long, the longest phrases are shortened,
    and then the last ones are counted too.
    """
    if not phrases:
        return None
    changes = [abs(phrase.change or 0) for phrase in phrases]
    whole = abs(sum(phrase.change or 0 for phrase in phrases))
    least = _LEAST_OF_LINE * min(max(whole, 1), max(changes)) if max(changes) else 0
    shown = [
        phrase
        for phrase, change in zip(phrases, changes, strict=True)
        if phrase.kind != "remainder" and (change >= least or phrase.change is None)
    ] or list(phrases)
    # Terms that explain less than half of the change, or twice as much, do not stand alone.
    change = sum(phrase.change or 0 for phrase in phrases)
    sums = accumulate(phrase.change or 0 for phrase in shown)
    enough = (n for n, total in enumerate(sums, 1) if 2 * abs(change - total) <= abs(change))
    fewest = next(enough, len(shown))
    lines = [
        (count, texts, f"; {more}" if more else "")
        for with_sources in (True, False)
        for count in range(len(shown), 0, -1)
        for more in [_left_out(phrases, shown[:count])]
        for texts in _shortened(shown[:count], with_sources=with_sources)
    ]
    fitting = [
        (count, line)
        for count, texts, more in lines
        if len(line := "; ".join(texts) + more) < _LINE
    ]
    if fitting:
        most = max(count for count, _ in fitting)
        return next(line for count, line in fitting if count >= min(fewest, most))
    _, texts, more = lines[-1]
    return f"{texts[0][: _LINE - len(more) - 2]}…{more}"


def _left_out(phrases: Sequence[Phrase], shown: Sequence[Phrase]) -> str:
    """How many phrases are not told, and their bytes; empty if none is worth a word."""
    left = [phrase for phrase in phrases if phrase not in shown]
    rest = sum(phrase.change or 0 for phrase in left)
    least = _LEAST_LEFT_OUT * max(abs(phrase.change or 0) for phrase in phrases)
    if not any(phrase.change is None or abs(phrase.change) > least for phrase in left):
        return ""
    return f"{len(left)} more{f' {signed_size(rest)}' if rest else ''}"


def _shortened(phrases: Sequence[Phrase], *, with_sources: bool) -> Iterator[list[str]]:
    """The phrases in full, and again with the longest one shortened, until all are."""
    texts = [phrase.text for phrase in phrases]
    ends = [
        (f" {signed_size(phrase.change)}" if phrase.change else "")
        + (f" ({phrase.source})" if with_sources and phrase.change and phrase.source else "")
        for phrase in phrases
    ]
    yield [text + end for text, end in zip(texts, ends, strict=True)]
    for number in sorted(range(len(phrases)), key=lambda number: -len(texts[number])):
        short = phrases[number].short
        if short and len(short) < len(texts[number]):
            texts[number] = short
            yield [text + end for text, end in zip(texts, ends, strict=True)]


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
    return _listed(sorted(sizes, key=lambda name: -sizes[name]))


def _listed(names: Sequence[str]) -> str:
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
    """Layers that came or went; new, gone and changed arguments, the change of most bytes first."""
    matched = match(pair.a.arguments, pair.b.arguments)
    groups: dict[object, _Change] = {}
    for a, b in matched.both:
        if a.shape != b.shape or _is_resharded(pair, a, b):
            groups.setdefault(_change(a, b), []).append((a, b))
    resharded = [
        what
        for what, group in groups.items()
        if all(_is_resharded(pair, *leaves) for leaves in group)
    ]
    weighed = [
        (_bytes(groups[what]), _changed(pair, groups[what], is_resharded=what in resharded))
        for what in groups
        if what not in resharded or len(resharded) == 1
    ]
    # Another mesh changes most arguments, each in its own way.
    if len(resharded) > 1:
        whole = [leaves for what in resharded for leaves in groups[what]]
        weighed.append((_bytes(whole), _resharded(whole)))
    weighed = _of_one_ratio(groups, resharded) or weighed
    layers, matched = _layers(pair, matched)
    weighed += _new_and_gone(pair, matched)
    return [*layers, *(phrase for _, phrase in sorted(weighed, key=lambda row: -row[0]))]


def _layers(pair: Pair, matched: Matched) -> tuple[list[Phrase], Matched]:
    """More or fewer of what both sides have, such as layer_4 beside layer_0 to layer_3.

    Also gives the arguments that are new or gone without them.
    """
    sides = [pair.a.arguments, pair.b.arguments]
    if not all(leaf.name for side in sides for leaf in side):
        return [], matched
    shapes = [{(unnumbered(called(leaf)), leaf.shape) for leaf in side} for side in sides]
    more, fewer = (
        [leaf for leaf in leaves if (unnumbered(called(leaf)), leaf.shape) in others]
        for leaves, others in ((matched.new, shapes[0]), (matched.gone, shapes[1]))
    )
    # Of renamed arguments, as many are gone as are new.
    one, sign = (more, 1) if len(more) > len(fewer) else (fewer, -1)
    step = _counted_step(pair, one)
    if len(more) == len(fewer) or step is None:
        return [], matched
    name, before, after = step
    owners = {unnumbered(called(leaf)) for leaf in one}
    phrase = Phrase(
        "layers",
        f"{before} → {after} layers ({name})",
        explains=any_of(
            of_owners(owners), of_step(unnumbered(name), sign), _counted(before, after)
        ),
    )
    new, gone = (
        [leaf for leaf in leaves if unnumbered(called(leaf)) not in owners]
        for leaves in (matched.new, matched.gone)
    )
    return [phrase], Matched(matched.both, gone, new)


def _counted_step(pair: Pair, leaves: Sequence[Leaf]) -> tuple[str, int, int] | None:
    """The step in these arguments' names of which a side has more: its last name, both counts."""
    owners = {unnumbered(called(leaf)) for leaf in leaves}
    if not owners:
        return None
    # What the most arguments share is the layer.
    counts: dict[tuple[str, ...], list[set[tuple[str, ...]]]] = {}
    for side, place in ((pair.a, 0), (pair.b, 1)):
        for leaf in side.arguments:
            if unnumbered(called(leaf)) in owners:
                steps = tuple(re.split(r"[/\[\].']+", called(leaf)))
                for end in range(1, len(steps) + 1):
                    if unnumbered(steps[end - 1]) != steps[end - 1]:
                        root = tuple(map(unnumbered, steps[:end]))
                        counts.setdefault(root, [set(), set()])[place].add(steps[:end])
    other = {root: sides for root, sides in counts.items() if len(sides[0]) != len(sides[1])}
    if not other:
        return None
    # Each layer is there in parameters and in every part of the optimizer's state.
    root = min(other, key=lambda root: (len(root), root))
    before, after = other[root]
    extra = after - before if len(after) > len(before) else before - after
    *_, outer, name = ("", *max(extra))
    return f"{outer}[{name}]" if name.isdigit() else name, len(before), len(after)


def _counted(before: int, after: int) -> Explains:
    """What there are so many times more of, in one shape."""

    def explains(difference: Difference) -> bool:
        a, b = difference.a, difference.b
        if a is None or b is None or a.shape != b.shape:
            return False
        return a.buffers * after == b.buffers * before

    return explains


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


def _changed(pair: Pair, change: _Change, *, is_resharded: bool) -> Phrase:
    """One change of one or more arguments, and of all that scales with them."""
    words = _change_words(change, is_resharded=is_resharded)
    layers = _stacked(pair, change)
    if layers is not None:
        text = f"{layers[0]} → {layers[1]} layers in {len(change)} arguments"
        words = Phrase("layers", text)
    return _with_all_that_scales(words, change)


def _with_all_that_scales(phrase: Phrase, change: _Change) -> Phrase:
    """The phrase, which explains the arguments, and what has their sizes or grew as they did."""
    sizes = _sizes(change)
    owners = of_owners(called(leaf) for leaves in change for leaf in leaves)
    # Layers are a dimension of their own.
    is_scale = phrase.kind != "layers"
    ratios = frozenset(other / one for one, other in sizes if is_scale)
    return replace(phrase, explains=any_of(owners, resized(sizes)), ratios=ratios)


def _of_one_ratio(
    groups: Mapping[object, _Change], resharded: Sequence[object]
) -> list[tuple[int, Phrase]]:
    """The one phrase of arguments that all grew or shrank alike: others have no bytes here."""
    whole = [leaves for group in groups.values() for leaves in group]
    ratios = {other / one for one, other in _sizes(whole)}
    if len(groups) < _MOST_NAMED or len(ratios) != 1 or resharded:
        return []
    ratio = ratios.pop()
    times = f"{ratio:.3g} times larger" if ratio > 1 else f"{1 / ratio:.3g} times smaller"
    text = f"{roots(a for a, _ in whole)}: {times} in {len(whole)} arguments"
    a, b = max(whole, key=lambda pair: max(leaf.size for leaf in pair))
    words = f"{text}, {called(a)} {a.shape} → {b.shape}"
    return [(_bytes(whole), _with_all_that_scales(Phrase("argument", words, text), whole))]


def _sizes(change: _Change) -> set[tuple[int, int]]:
    """The sizes of dimensions that changed."""
    return {
        (int(one), int(other))
        for a, b in change
        if a.type == b.type and len(a.dimensions) == len(b.dimensions)
        for one, other in zip(a.dimensions, b.dimensions, strict=True)
        if one != other and one.isdigit() and other.isdigit() and int(one)
    }


def _stacked(pair: Pair, change: _Change) -> tuple[str, str] | None:
    """The numbers of layers, if all that changed is the first dimension of stacked weights."""
    roles = {part.owner: part.role for part in pair.b.parts if part.category == "argument"}
    sizes = {
        (a.dimensions[:1], b.dimensions[:1], a.dimensions[1:] == b.dimensions[1:])
        for a, b in change
    }
    weights = {roles.get(unnumbered(called(leaf))) for _, leaf in change} - {None}
    if len(sizes) != 1 or len(change) < _MOST_NAMED or not weights:
        return None
    ((one, other, is_rest_same),) = sizes
    is_stack = is_rest_same and weights <= {"weight", "optimizer state"}
    return (one[0], other[0]) if is_stack and one and other else None


def _change_words(change: _Change, *, is_resharded: bool) -> Phrase:
    """One change of one or more arguments, in words."""
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
    return _with_all_that_scales(Phrase("argument", f"{text}{shapes}", text), change)


def _new_and_gone(pair: Pair, matched: Matched) -> list[tuple[int, Phrase]]:
    gone, new = matched.gone, matched.new
    gone_bytes, new_bytes = (sum(leaf.size for leaf in side) for side in (gone, new))
    most = max(gone_bytes, new_bytes)
    if gone and [leaf.shape for leaf in gone] == [leaf.shape for leaf in new]:
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        text = f"renamed arguments: {called(gone[0])} → {called(new[0])}{more}"
        return [(most, Phrase("renamed", text, explains=_of_leaves((*gone, *new))))]
    if gone and new and abs(new_bytes - gone_bytes) <= _SAME_BYTES * most:
        counts = f"{len(pair.a.arguments)} → {len(pair.b.arguments)}"
        text = f"arguments regrouped: {counts}, same bytes"
        return [(most, Phrase("argument", text, explains=_of_leaves((*gone, *new))))]
    weighed = []
    sides = (pair.b.arguments, pair.a.arguments)
    states = [_of_optimizer(side, leaves) for side, leaves in ((pair.a, gone), (pair.b, new))]
    if all(states):
        # Arrays of the optimizer's state that came and that went are another optimizer.
        before, after = map(_own_names, states, sides)
        text = f"other optimizer: {before} → {after}"
        phrase = Phrase("argument", text, "other optimizer", _of_leaves((*states[0], *states[1])))
        weighed.append((sum(leaf.size for leaf in (*states[0], *states[1])), phrase))
        gone, new = (
            [leaf for leaf in leaves if leaf not in state]
            for leaves, state in ((gone, {*states[0]}), (new, {*states[1]}))
        )
    for leaves, side, one, many in (
        (new, sides[1], "new argument {}", "{} new arguments"),
        (gone, sides[0], "argument {} gone", "{} arguments gone"),
    ):
        total = sum(leaf.size for leaf in leaves)
        explains = _of_leaves(leaves)
        if len(leaves) == 1:
            text = f"{one.format(called(leaves[0]))}: {leaves[0].shape}"
            weighed.append((total, Phrase("argument", text, explains=explains)))
        elif leaves:
            text = many.format(len(leaves))
            names = _own_names(leaves, side)
            weighed.append((total, Phrase("argument", f"{text}: {names}", text, explains=explains)))
    return weighed


def _own_names(leaves: Sequence[Leaf], others: Sequence[Leaf]) -> str:
    """The arguments by the first step in their names that no other argument has: value_head."""
    known = {step for leaf in others for step in _STEP.findall(called(leaf))}
    sizes: dict[str, int] = {}
    for leaf in leaves:
        own = next((step for step in _STEP.findall(called(leaf)) if step not in known), None)
        if own is None:
            return roots(leaves)
        sizes[own] = sizes.get(own, 0) + leaf.size
    return _listed([name.strip("[]'.") for name in sorted(sizes, key=lambda name: -sizes[name])])


def _of_leaves(leaves: Iterable[Leaf]) -> Explains:
    return of_owners([called(leaf) for leaf in leaves])


def _of_optimizer(side: Side, leaves: Sequence[Leaf]) -> list[Leaf]:
    """Those that are the optimizer's state, and small ones beside them."""
    roles = {part.owner: part.role for part in side.parts if part.category == "argument"}
    known = [(leaf, roles.get(unnumbered(called(leaf)))) for leaf in leaves]
    state = [leaf for leaf, role in known if role == "optimizer state"]
    return [leaf for leaf, role in known if role in ("optimizer state", None)] if state else []


def donation(pair: Pair) -> list[Phrase]:
    """The bytes of arguments that results may no longer take, or may now.

    XLA exchanges arguments of one shape from one compilation to the next, so only the sums of
    both tell. Of arguments that are grouped otherwise, all together tell.
    """
    matched = match(pair.a.arguments, pair.b.arguments)
    both = matched.both
    lost = [(a, a.donated) for a, b in both if a.donated and not b.donated]
    gained = [(b, b.donated) for a, b in both if b.donated and not a.donated]
    net = sum(amount for _, amount in gained) - sum(amount for _, amount in lost)
    if not net and matched.gone and matched.new:
        # What is not donated any more, or now, although there are as many bytes of arguments.
        lost = [(leaf, leaf.donated) for leaf in pair.a.arguments if leaf.donated]
        gained = [(leaf, leaf.donated) for leaf in pair.b.arguments if leaf.donated]
        lost_bytes, gained_bytes = (sum(n for _, n in side) for side in (lost, gained))
        if bool(lost_bytes) != bool(gained_bytes):
            net = gained_bytes - lost_bytes
    if not net or abs(net) < _LEAST_DONATED * pair.peak:
        return []
    text = f"{'donated now' if net > 0 else 'donation lost'}: {size(net)}"
    changed = gained if net > 0 else lost
    short = text.partition(":")[0]
    words = f"{text} of {roots(leaf for leaf, _ in changed)}"
    explains = of_category("output", -1 if net > 0 else 1)
    return [Phrase("donation", words, short, explains)]


def results(pair: Pair) -> list[Phrase]:
    """The results' shapes, which follow the arguments' where those changed."""
    before, after = (
        sorted(leaf.shape for leaf in side) for side in (pair.a.results, pair.b.results)
    )
    if before == after:
        # Another order of the same results.
        return []
    if len(before) != len(after):
        text = f"results: {len(before)} → {len(after)} arrays"
        return [Phrase("result", text, explains=_of_outputs)]
    found = match(pair.a.results, pair.b.results)
    changed = [(a, b) for a, b in found.both if a.shape != b.shape]
    a, b = max(changed, key=lambda leaves: max(leaf.size for leaf in leaves))
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    text = f"result{a.index}: {a.shape} → {b.shape}{more}"
    return [Phrase("result", text, explains=_of_outputs)]


def _of_outputs(difference: Difference) -> bool:
    return difference.category == "output"


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

# XLA's own rematerialisation is told if the instructions change by so many, and by this share.
_LEAST_CLONES, _LEAST_CLONES_SHARE = 3, 0.2
# Work is told if it changes by this share.
_LEAST_WORK = 0.01
# A type is told if it comes to this share of the bytes, or goes, and is as good as absent else;
# or if it was the type of so many products, and is of none.
_PRESENT, _ABSENT = 0.05, 0.01
_MOST_PRODUCTS = 0.5
_COUNTING_TYPES = frozenset({"pred", "s32", "s64", "u32", "u64"})
# Fragmentation is told from this share of the total on.
_LEAST_PACKING = 0.005


def rematerialised(pair: Pair, *, is_resized: bool) -> list[Phrase]:
    """Whether JAX computes activations again in the backward pass, and which operations.

    The work that this takes is told where the arguments are not what changes it.
    """
    work = "" if is_resized else _more_work(pair)
    in_brackets = work and f" ({work})"
    a, b = pair.a.amount("recomputed"), pair.b.amount("recomputed")
    if not a and not b:
        return []
    if not a or not b:
        text = "rematerialised now" if b else "no longer rematerialised"
        how = f"{text} (jax.checkpoint{work and f', {work}'})"
        return [Phrase("remat", how, text + in_brackets, of_residuals)]
    return _policy(pair, in_brackets)


def _more_work(pair: Pair) -> str:
    """How much more the program computes, such as `+21 % work`; empty if that is not known."""
    ratio = pair.work_ratio
    if ratio is None or abs(ratio - 1) < _LEAST_WORK:
        return ""
    return f"{100 * (ratio - 1):+.0f} % work"


def _policy(pair: Pair, work: str) -> list[Phrase]:
    """Which costly operations another checkpoint policy computes again.

    The share of an operation's forward instructions counts, for more layers are no policy. The
    last quarter does not: what `dots_with_no_batch_dims_saveable` leaves, say.
    """
    by_change: dict[str, list[str]] = {}
    names = {*pair.a.traits.get("recomputed", {}), *pair.b.traits.get("recomputed", {})} - {""}
    for name in sorted(names):
        a, b = (_recomputed_share(side, name) for side in (pair.a, pair.b))
        if b <= a / 4:
            by_change.setdefault("no longer recomputed", []).append(name)
        elif a <= b / 4:
            by_change.setdefault("recomputed now", []).append(name)
        elif b <= a / 2:
            by_change.setdefault("recomputed less", []).append(name)
        elif a <= b / 2:
            by_change.setdefault("recomputed more", []).append(name)
    if not by_change:
        return []
    change = ", ".join(f"{', '.join(operations)} {how}" for how, operations in by_change.items())
    return [Phrase("remat", f"checkpoint policy: {change}{work}", change + work, of_residuals)]


def _recomputed_share(side: Side, name: str) -> float:
    return side.amount("recomputed", name) / max(side.amount("forward", name), 1)


def random_bits(pair: Pair) -> list[Phrase]:
    """Whether the program makes random bits, such as those of dropout, on one side alone."""
    a, b = (side.traits.get("random", {}) for side in (pair.a, pair.b))
    if bool(a) == bool(b):
        return []
    text = f"random bits {'now' if b else 'gone'} (dropout)"
    return [Phrase("random", text, explains=of_lines({*a, *b}))]


def clones(pair: Pair) -> list[Phrase]:
    """What XLA itself computes again to save memory; the arguments are the same."""
    work = _more_work(pair)
    work = work and f", {work}"
    a, b = pair.a.amount("clones"), pair.b.amount("clones")
    if bool(a) != bool(b):
        text = f"XLA recomputes {b} instructions now" if b else "XLA no longer recomputes"
        return [Phrase("clones", text + work)]
    if abs(b - a) > max(_LEAST_CLONES, _LEAST_CLONES_SHARE * max(a, b)):
        return [Phrase("clones", f"XLA recomputes {a} → {b} instructions{work}")]
    return []


def loops(pair: Pair) -> list[Phrase]:
    """Whether the framework's loops, such as a scan over layers, come or go."""
    a, b = pair.a.amount("loops"), pair.b.amount("loops")
    if bool(a) == bool(b):
        return []
    count = max(a, b)
    loops = "1 loop" if count == 1 else f"{count} loops"
    text = f"{loops} now (while)" if b else f"{loops} unrolled (while)"
    # Layers that are scanned now, or no longer, are other arguments too.
    is_scan = len(pair.a.arguments) != len(pair.b.arguments)
    return [Phrase("loop", text, explains=of_temps if is_scan else None)]


def types(pair: Pair) -> list[Phrase]:
    """An element type in which a part of the program is computed on one side alone."""
    gone, new = _other_types(pair, "computed", _PRESENT, _ABSENT)
    if not (gone or new):
        # A compiler keeps copies in other types, so the bytes may not tell; products do.
        gone, new = _other_types(pair, "product", _MOST_PRODUCTS, 0)
    if gone and new:
        return [
            Phrase("type", f"computes in {new}, no longer in {gone}", explains=of_type(new, gone))
        ]
    if new:
        return [Phrase("type", f"computes in {new} now", explains=of_type(new, gone))]
    return (
        [Phrase("type", f"no longer computes in {gone}", explains=of_type(new, gone))]
        if gone
        else []
    )


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
    if pair.a.amount("collectives") == pair.b.amount("collectives"):
        return []
    return [Phrase("collective", "collectives at the peak", explains=_of_collectives)]


def _of_collectives(difference: Difference) -> bool:
    return any(part.operation in COLLECTIVES for part in difference.parts)


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
    a, b = (side.traits.get("operation", {}) for side in (pair.a, pair.b))
    changes = {name: b.get(name, 0) - a.get(name, 0) for name in {*a, *b}}
    if pair.a.amount("collectives") != pair.b.amount("collectives"):
        among = [name for name in sorted(changes) if name in COLLECTIVES and changes[name]]
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


def moved(pair: Pair) -> list[Phrase]:
    """What ran at the peak before, and what runs there now."""
    a, b = (next(iter(side.traits.get("peak_at", {})), None) for side in (pair.a, pair.b))
    if a is None or b is None or a == b:
        return []
    return [Phrase("moved", f"the peak is at {b}, was at {a}")]


# What a user sets besides the program: its health, the device, the compiler, flags, names.

_LISTED_FLAGS = 2
# Some versions of libtpu print a number for the device's name: it names no other device.
_SCRAMBLED = re.compile(r"[0-9a-f]{8,}\b")
_STATUS = {"failed": "failed", "partial": "is partial"}
_GRADES = {1: "figures are estimated", 2: "figures are estimated without a schedule"}


def health(pair: Pair) -> list[Phrase]:
    """Whether one side failed, ran out of memory or is known in part only."""
    a, b = pair.a.dump, pair.b.dump
    texts = []
    if a["oom"] != b["oom"]:
        texts.append(
            "XLA runs out of memory now" if b["oom"] else "XLA no longer runs out of memory"
        )
    if a["status"] != b["status"]:
        texts += [f"the dump before {_STATUS[a['status']]}"] if a["status"] in _STATUS else []
        texts += [f"this dump {_STATUS[b['status']]}"] if b["status"] in _STATUS else []
    if pair.has_modules and a["grade"] != b["grade"]:
        texts.append(_GRADES.get(b["grade"], "figures were estimated before"))
    return [Phrase("health", text) for text in texts]


def device(pair: Pair) -> list[Phrase]:
    """Another device, or another number of them."""
    a, b = pair.a.dump, pair.b.dump
    names = (a["device_kind"], b["device_kind"])
    # Another reader may have another name for one device.
    is_other = pair.differs("device_kind") and not pair.differs("reader_version")
    if is_other and not any(map(_SCRAMBLED.match, names)):
        return [Phrase("device", f"device {a['device_kind']} → {b['device_kind']}")]
    if pair.differs("num_partitions"):
        counts = (a["num_partitions"], b["num_partitions"])
        text = f"{counts[0]} → {counts[1]} partitions"
        return [Phrase("device", text, explains=scaled(counts[0] / counts[1]))]
    return []


def compiler_and_flags(pair: Pair) -> list[Phrase]:
    """Another compiler, else the flags that differ.

    Another compiler has other defaults, so its flags are only counted.
    """
    versions = []
    if pair.differs("compiler"):
        versions.append(f"compiler {pair.a.dump['compiler']} → {pair.b.dump['compiler']}")
    versions += _versions(pair)
    if versions:
        count = len(pair.flags)
        counted = f" ({count} {'flag' if count == 1 else 'flags'})" if count else ""
        return [Phrase("compiler", f"{', '.join(versions)}{counted}", versions[0])]
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


_OF_PASS = {
    "other": "pass {} does otherwise",
    "gone": "pass {} changes nothing now",
    "new": "pass {} changes the program now",
    "from": "passes differ, from {} on",
}


def differing_pass(pair: Pair) -> list[Phrase]:
    """The first pass of the compiler that does otherwise, if both sides have their texts."""
    found = first_difference(pair.a.passes, pair.b.passes)
    if found is None:
        return []
    step = found.step
    text = _OF_PASS[found.how].format(step.name)
    return [
        Phrase("pass", f"{text} ({step.pipeline}, {step.step})" if step.pipeline else text, text)
    ]


def _versions(pair: Pair) -> list[str]:
    """The versions that the runs are labelled with, where they differ."""
    versions: list[str] = []
    for key in VERSIONS:
        a, b = pair.a.versions.get(key), pair.b.versions.get(key)
        if None in (a, b) or a == b or (key == "libtpu" and pair.differs("compiler")):
            continue
        # jaxlib mostly has the version of jax.
        if key == "jaxlib" and versions == [f"jax {a} → {b}"]:
            continue
        versions.append(f"{key} {a} → {b}")
    return versions


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
