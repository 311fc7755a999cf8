"""Which dimensions of an instruction's operands are which of its result, as its attributes say."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Pairs of a side (the operand's number, RESULT) and an axis of it.
RESULT = -1
Axis = tuple[int, int]

_LABELS = re.compile(r"(?P<input>\w+)_(?P<kernel>\w+)->(?P<output>\w+)")


@dataclass(frozen=True)
class Links:
    """alike: axes of one size, two and two; windows: the same, unless one is only a part;
    groups: the first is so many times the second; lost: axes that have to do with each other.
    """

    alike: list[tuple[Axis, Axis]]
    windows: list[tuple[Axis, Axis]]
    groups: list[tuple[Axis, Axis]]
    lost: list[list[Axis]]


Sizes = Mapping[int, tuple[int, ...]]


def links(opcode: str, values: Mapping[str, str], sizes: Sizes) -> Links:
    """What an instruction does to dimensions.

    values: the attributes by name, as XLA prints them; sizes: the dimensions of its operands and of
    its result, by side; a scatter has the sides operand, indices and updates.
    """
    found = Links([], [], [], [])
    if opcode in ("broadcast", "transpose", "reduce"):
        axes = numbers(values["dimensions"])
        if opcode == "broadcast":
            pairs = list(enumerate(axes))
        else:
            kept = axes if opcode == "transpose" else without(len(sizes[0]), axes)
            pairs = [(axis, place) for place, axis in enumerate(kept)]
        found.alike.extend(((0, here), (RESULT, there)) for here, there in pairs)
    elif opcode == "dot":
        found.alike.extend(_product(values, sizes))
    elif opcode == "convolution":
        _convolve(found, values, sizes)
    else:
        _index(found, opcode, values, sizes)
    return found


def numbers(text: str | None) -> list[int]:
    """The numbers of a list such as `{0,2}`."""
    return [int(number) for number in (text or "").strip("{}").split(",") if number]


def without(count: int, left_out: list[int]) -> list[int]:
    """The axes of so many that are not left out."""
    return [axis for axis in range(count) if axis not in left_out]


def _product(values: Mapping[str, str], sizes: Sizes) -> Iterator[tuple[Axis, Axis]]:
    contracted = [numbers(values.get(f"{side}_contracting_dims")) for side in ("lhs", "rhs")]
    batch = [numbers(values.get(f"{side}_batch_dims")) for side in ("lhs", "rhs")]
    for here, there in zip(*contracted, strict=True):
        yield (0, here), (1, there)
    for place, (here, there) in enumerate(zip(*batch, strict=True)):
        yield (RESULT, place), (0, here)
        yield (0, here), (1, there)
    place = len(batch[0])
    for side in (0, 1):
        for axis in without(len(sizes[side]), contracted[side] + batch[side]):
            yield (RESULT, place), (side, axis)
            place += 1


def _convolve(found: Links, values: Mapping[str, str], sizes: Sizes) -> None:
    """The dimensions of a convolution; a TPU's matrix products are convolutions too."""
    labels = _LABELS.fullmatch(values["dim_labels"])
    assert labels is not None
    place = {
        side: {letter: axis for axis, letter in enumerate(labels[name])}
        for side, name in ((0, "input"), (1, "kernel"), (RESULT, "output"))
    }
    source, batch = (0, place[0]["b"]), (RESULT, place[RESULT]["b"])
    taken, features = (0, place[0]["f"]), (1, place[1]["i"])
    made = (1, place[1]["o"])
    found.alike.append((made, (RESULT, place[RESULT]["f"])))
    if "batch_group_count" in values:
        found.lost.append([source, batch, made, taken, features])
    else:
        found.alike.append((source, batch))
        (found.groups if "feature_group_count" in values else found.alike).append((taken, features))
    windows = _window(values.get("window", ""))
    for number in range(len(sizes[0]) - 2):
        axes = [(side, place[side][str(number)]) for side in (0, 1, RESULT)]
        _slide(found, axes, sizes, {name: each[number] for name, each in windows.items()})


def _window(text: str) -> dict[str, list[str]]:
    """The parts of a window such as `{size=3x3 stride=2x2}`, each by dimension."""
    parts = (part.split("=") for part in text.strip("{}").split())
    return {name: each.split("x") for name, each in parts}


def _slide(found: Links, axes: list[Axis], sizes: Sizes, window: Mapping[str, str]) -> None:
    """A dimension of space, along which the kernel slides over the input.

    XLA also writes products so: a kernel as long as the input adds it up or, where it steps over
    the zeros between the elements, goes along with it; and one that slides over a single element
    only gives its own elements.
    """
    source, kernel, made = axes
    size = {axis: sizes[axis[0]][axis[1]] for axis in axes}
    is_batch = window.get("lhs_dilate") == window.get("size") != "1" and "lhs_dilate" in window
    if is_batch and len(set(size.values())) == 1:
        found.alike.extend([(source, kernel), (kernel, made)])
        return
    long = [axis for axis in axes if size[axis] > 1]
    if len(long) == 2 and size[long[0]] == size[long[1]]:
        found.alike.append((long[0], long[1]))
    elif len(long) == 3 and size[source] == size[made] != size[kernel]:
        found.alike.append((source, made))
    elif len(long) == 3 and size[source] == size[kernel] != size[made]:
        found.alike.append((source, kernel))
    elif len(set(size.values())) == 1 and long:
        found.lost.append(axes)
    elif len(long) > 1:
        # The shortest is the window, which is the program's own.
        found.lost.append(sorted(long, key=lambda axis: size[axis])[-2:])


def _index(found: Links, opcode: str, values: Mapping[str, str], sizes: Sizes) -> None:
    """A gather's slices of its operand, or where a scatter writes its updates."""
    if opcode == "gather":
        part, names = RESULT, ("offset_dims", "collapsed_slice_dims")
        of_operand, of_indices = "operand_batching_dims", "start_indices_batching_dims"
    else:
        part, names = 2, ("update_window_dims", "inserted_window_dims")
        of_operand, of_indices = "input_batching_dims", "scatter_indices_batching_dims"
    batching, with_batch = (numbers(values.get(name)) for name in (of_operand, of_indices))
    offset, collapsed = (numbers(values.get(name)) for name in names)
    kept = without(len(sizes[0]), collapsed + batching)
    found.windows.extend(
        ((0, here), (part, there)) for here, there in zip(kept, offset, strict=True)
    )
    places = without(len(sizes[1]), [int(values["index_vector_dim"])])
    others = without(len(sizes[part]), offset)
    found.alike.extend(
        ((1, here), (part, there)) for here, there in zip(places, others, strict=True)
    )
    found.alike.extend(
        ((0, here), (1, there)) for here, there in zip(batching, with_batch, strict=True)
    )
