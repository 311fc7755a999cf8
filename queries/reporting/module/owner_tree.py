"""What fills memory at the peak as a tree of owners: by scope, by source line or by role."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ...cells import without_layout

# Of an owner so many children are shown by themselves, and only those that can be seen.
_SHOWN = 40
_ALWAYS_SHOWN = 8
_SMALLEST_SHARE = 1 / 1500
# Deeper owners are one: a name of thousands of parts would be thousands of levels to click through.
_DEEPEST = 64
# An argument's name in its parts: p, ['layers'], [0], .mu
_PART = re.compile(r"\[[^\[\]]*\]|[.]?[^.\[]+|.", re.DOTALL)

_Buffer = Mapping[str, Any]


@dataclass
class Owner:
    """An owner of memory: its bytes are those of its children, if there are any.

    name: what to call it within its parent; size_bytes; buffers: how many it owns; children: the
    largest first; detail: of a buffer, the value that it holds.
    """

    name: str
    size_bytes: int = 0
    buffers: int = 0
    children: list["Owner"] = field(default_factory=list)
    detail: str = ""


def owner_tree(buffers: Iterable[_Buffer], by: str) -> Owner:
    """The tree of what is counted of the buffers, by `scope`, `source` or `role`.

    Small owners are children of one that is called `n more`.
    """
    root = _Branch("peak")
    for buffer in buffers:
        at = root
        for key, name in islice(PATHS[by](buffer), _DEEPEST):
            at = at.branches.setdefault(key, _Branch(name))
        at.leaves.append(_leaf(buffer))
    tree = root.owner()
    tree.children = [_without_chains(child) for child in tree.children]
    return _capped(tree)


@dataclass
class _Branch:
    name: str
    branches: dict[str, "_Branch"] = field(default_factory=dict)
    leaves: list[Owner] = field(default_factory=list)

    def owner(self) -> Owner:
        children = [*(branch.owner() for branch in self.branches.values()), *self.leaves]
        return _parent(self.name, children)


def _parent(name: str, children: list[Owner]) -> Owner:
    children.sort(key=lambda child: -child.size_bytes)
    size = sum(child.size_bytes for child in children)
    return Owner(name, size, sum(child.buffers for child in children), children)


def _leaf(buffer: _Buffer) -> Owner:
    guess = "?" if buffer["is_guess"] else ""
    shape = without_layout(buffer["shape"] or "")
    if buffer["kind"] == "arguments" and buffer["op_name"]:
        name, detail = buffer["op_name"], f"{shape} {buffer['value'] or ''}"
    else:
        name, detail = f"{shape} {buffer['value'] or ''}", f"{buffer['op_name'] or ''}"
    return Owner(
        f"{name.strip() or '(no name)'}{guess}", buffer["counted_bytes"], 1, [], detail.strip()
    )


def _without_chains(owner: Owner) -> Owner:
    """An owner of one child is that child, called by both names."""
    if len(owner.children) == 1:
        (child,) = owner.children
        has_name = child.name.startswith(owner.name)
        name = child.name if has_name else f"{owner.name} / {child.name}"
        merged = Owner(name, child.size_bytes, child.buffers, child.children, child.detail)
        return _without_chains(merged)
    owner.children = [_without_chains(child) for child in owner.children]
    return owner


def _capped(owner: Owner) -> Owner:
    """The owner with its small children in one child `n more`, which can be entered too."""
    children = owner.children
    seen = sum(child.size_bytes >= owner.size_bytes * _SMALLEST_SHARE for child in children)
    shown = min(max(seen, _ALWAYS_SHOWN), _SHOWN)
    if len(children) > shown + 1:  # One more is shown itself.
        rest = _paged(children[shown:], shown + 1)
        more = _parent(f"{len(children) - shown} more", rest)
        owner.children = [*map(_capped, [*children[:shown], more])]
    else:
        owner.children = [*map(_capped, children)]
    return owner


def _paged(children: list[Owner], first: int) -> list[Owner]:
    """Children as pages of them if they are many, so that each is a few steps away."""
    if len(children) <= _SHOWN:
        return children
    size = max(_SHOWN, -(-len(children) // _SHOWN))
    return [
        _parent(f"{first + at} to {first + at + len(page) - 1}", page)
        for at in range(0, len(children), size)
        for page in [children[at : at + size]]
    ]


def _path_by_scope(buffer: _Buffer) -> Iterable[tuple[str, str]]:
    kind = buffer["kind"]
    if kind.endswith("arguments"):
        yield from _named(f"({kind})")
        yield from _named(buffer["role"] or "(role not known)")
        yield from _argument(buffer)
    else:
        yield from _scope(buffer)


def _path_by_source(buffer: _Buffer) -> Iterable[tuple[str, str]]:
    file, line = buffer["source_file"], buffer["source_line"]
    if not file:
        yield from _named(f"({buffer['kind']})")
        yield from _argument(buffer)
        return
    short = re.split(r"[/\\]", file)[-1] or file
    # Files of one name in different folders are different owners.
    yield file, short
    if buffer["function"]:
        yield from _named(buffer["function"])
    yield f"line {line}", f"{short}:{line}"


def _path_by_role(buffer: _Buffer) -> Iterable[tuple[str, str]]:
    yield from _named(buffer["role"] or "(not known)")
    if buffer["kind"].endswith("arguments"):
        yield from _argument(buffer)
    else:
        yield from _scope(buffer)


def _scope(buffer: _Buffer) -> Iterable[tuple[str, str]]:
    for part in (buffer["scope"] or "(no scope)").split("/"):
        yield f"scope {part}", part
    yield from _named(buffer["operation"] or "(not known)")


def _argument(buffer: _Buffer) -> Iterable[tuple[str, str]]:
    """The names of what holds an argument: p and p['layers'] of p['layers'][0]."""
    name = ""
    for part in _PART.findall(buffer["op_name"] or "")[:-1]:
        name += part
        yield name, name


def _named(name: str) -> Iterable[tuple[str, str]]:
    yield name, name


PATHS: Mapping[str, Callable[[_Buffer], Iterable[tuple[str, str]]]] = {
    "scope": _path_by_scope,
    "source": _path_by_source,
    "role": _path_by_role,
}
