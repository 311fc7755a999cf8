"""What is said of a program that takes too much: the figures, what changed, who owns the peak."""

from __future__ import annotations

from collections.abc import Iterator

from ..queries.result import ESTIMATED, percent
from ..schema.readable import human_bytes, one_line
from .baseline import Before, WhatChanged
from .measured import Limit, Measured

_MOST_LINES = 5
_BOUND = "≈ its blocks and scratch: the compiler may add to them, see `memhouse kernels`"
_WIDTH = 80


def breach(measured: Measured, limit: Limit, before: Before | None) -> str | None:
    """Why the program fails, in lines of at most 80 characters below the first; None if it passes.

    before: what growth is held against; None if it is not judged. Raises ValueError if the two
    cannot be compared.
    """
    if before is not None and before.is_estimate != measured.is_estimate:
        estimate = "now it is an estimate" if measured.is_estimate else "before it was an estimate"
        raise ValueError(
            f"{measured.program}: {estimate} from HLO text, so growth cannot be told\n"
            f"  now: {measured.peak}\n"
            f"  before: {_size(before.peak_bytes, before.is_estimate)}, in {before.kept_in}\n"
            "  give `memory` the lowered program, which is exact, or accept what it takes now:\n"
            f"  {before.to_accept}"
        )
    said = [*_over_most(measured, limit), *_over_growth(measured, limit, before)]
    if not said:
        return None
    if before is not None:
        said += _what_changed(before.what_changed())
    owned = "the kernel:" if measured.is_kernel else "who owns the peak:"
    said += ["", owned, *_owners(measured)]
    if measured.is_estimate:
        said += ["", _BOUND if measured.is_kernel else ESTIMATED]
    first, *rest = map(one_line, said)
    return "\n".join([first, *(_cut(line) for line in rest)])


def _over_most(measured: Measured, limit: Limit) -> Iterator[str]:
    if limit.most is not None and measured.peak_bytes > limit.most.amount:
        over = human_bytes(measured.peak_bytes - limit.most.amount)
        yield f"{measured.program} takes {over} more than {limit.most.text}"
        yield f"  now: {measured.peak}"


def _over_growth(measured: Measured, limit: Limit, before: Before | None) -> Iterator[str]:
    if before is None or limit.growth is None:
        return
    grown = measured.peak_bytes - before.peak_bytes
    if grown <= limit.growth.of(before.peak_bytes):
        return
    share = f" ({percent(grown / before.peak_bytes)})" if before.peak_bytes else ""
    size = human_bytes(grown)
    yield f"{measured.program} grew by {size}{share}, more than {limit.growth.text}"
    yield f"  now: {measured.peak}"
    yield f"  before: {_size(before.peak_bytes, before.is_estimate)}, in {before.kept_in}"
    yield f"  to accept it: {before.to_accept}"


def _size(size: int, is_estimate: bool) -> str:
    return f"{'≈' if is_estimate else ''}{human_bytes(size)}"


def _what_changed(changed: WhatChanged) -> Iterator[str]:
    if changed.cause is not None:
        yield f"  cause: {changed.cause}"
    if changed.owners:
        yield from ("", "what changed:")
    for each in changed.owners[:_MOST_LINES]:
        size = human_bytes(abs(each.change_bytes))
        yield f"  {'+' if each.change_bytes > 0 else '-'}{size:>10}  {each.owner}"
    if rest := changed.owners[_MOST_LINES:]:
        total = sum(each.change_bytes for each in rest)
        yield f"  {'-' if total < 0 else '+'}{human_bytes(abs(total)):>10}  {len(rest)} more"


def _owners(measured: Measured) -> Iterator[str]:
    for line in measured.lines[:_MOST_LINES]:
        code = "" if line.where == line.text else f"  {line.text.partition(': ')[2]}"
        share = f"{line.size_bytes / measured.peak_bytes:>6.1%}"
        yield f"  {human_bytes(line.size_bytes):>11}  {share}  {line.where}{code}"
    if rest := measured.lines[_MOST_LINES:]:
        size = sum(line.size_bytes for line in rest)
        yield f"  {human_bytes(size):>11}  {size / measured.peak_bytes:>6.1%}  {len(rest)} more"


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
