"""Divides the programs of a run among tasks."""

from collections.abc import Callable, Hashable, Sequence


def pack(
    groups: Sequence[Sequence[int]],
    count: int,
    size: Callable[[int], int],
    archive: Callable[[int], Hashable | None],
) -> list[list[int]]:
    """The places of programs as at most `count` tasks of about equal bytes.

    The programs of a group stay together, in order. So do groups of one `archive`, which each
    task unpacks, unless the archive is more than one task's share.
    """
    sizes = [sum(map(size, group)) for group in groups]
    share = max(1, sum(sizes) // max(1, count))
    units: list[list[int]] = []
    lengths: list[int] = []
    of_archive: dict[Hashable, int] = {}
    for group, length in zip(groups, sizes, strict=True):
        key = archive(group[0])
        there = None if key is None else of_archive.get(key)
        if there is None or lengths[there] >= share:
            units.append([])
            lengths.append(0)
            there = len(units) - 1
            if key is not None:
                of_archive[key] = there
        units[there] += group
        lengths[there] += length
    tasks: list[list[int]] = [[] for _ in range(max(1, min(count, len(units))))]
    taken = [0] * len(tasks)
    # The largest first, each to the task that has least.
    for unit in sorted(range(len(units)), key=lambda unit: -lengths[unit]):
        least = taken.index(min(taken))
        tasks[least] += units[unit]
        # Files without bytes must be opened too.
        taken[least] += lengths[unit] + 1
    return [task for task in tasks if task]
