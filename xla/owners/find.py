"""The owner of every array of a program."""

from dataclasses import dataclass
from functools import partial

from ..named_program import COPIES
from ..program import NONE
from ..values import Values
from .candidates import BECOMES, FUSED, MOVED, OWN, READ, WEAK, Search
from .chains import ChainEnds
from .readers import Readers
from .rules import OwnerRules


@dataclass
class Owners:
    """The owners of values, by value.

    Attributes:
        row: the instruction that owns the value; NONE if no rule names one.
        rule: the rule that names it, one of RULES; None without an owner.
        source: the earlier value that it is a copy, a part or a conversion of, or that enters the
            loop that carries it, see `Buffers.before_moves`; itself if none.
    """

    row: list[int]
    rule: list[str | None]
    source: list[int]


def find_owners(values: Values, alias_set: list[int], readers: Readers) -> Owners:
    """The owner of every array; the table of a tuple has none.

    Args:
        alias_set: by value, the smallest value in its alias set, see `Liveness`.
    """
    rules = OwnerRules(values)
    search = Search(rules.find_candidates(), rules.fills.is_fill, rules.loop_phis)
    owners = _Owners(rules, readers, search, alias_set)
    owners.own_fills()
    owners.own_iotas()
    owners.own_copies_of_fills()
    source = [rules.buffers.before_moves[value] for value in range(len(values))]
    return Owners(owners.row, owners.rule, source)


class _Owners:
    """The owners so far, and the rules for values whose search ended at a fill or at an iota."""

    def __init__(
        self, rules: OwnerRules, readers: Readers, search: Search, alias_set: list[int]
    ) -> None:
        self._rules, self._values, self._named = rules, rules.values, rules.named
        self._readers, self._search, self._alias_set = readers, search, alias_set
        self.row = list(search.owner)
        self.rule: list[str | None] = [
            None if row == NONE else rule
            for row, rule in zip(search.owner, search.rule, strict=True)
        ]
        # By alias set, the owner of its first value in text order that has one.
        self._owner_of_set: dict[int, int] = {}
        for value, row in enumerate(self.row):
            if row != NONE:
                self._owner_of_set.setdefault(alias_set[value], row)
        self._unnamed_sources = ChainEnds(partial(_unnamed_source, rules))

    def _set(self, value: int, row: int, rule: str | None) -> None:
        self.row[value] = row
        self.rule[value] = None if row == NONE else rule

    def _later_owner(self, value: int) -> int:
        """The owner of another value in the alias set of a fill, written later, or NONE."""
        return self._owner_of_set.get(self._alias_set[value], NONE)

    def own_fills(self) -> None:
        """Set the owners of fills."""
        for value, is_fill in enumerate(self._rules.fills.is_fill):
            if is_fill:
                self._set(value, *self._owner_of_fill(value))

    def _owner_of_fill(self, value: int) -> tuple[int, str]:
        """The owner of a fill and the rule.

        It is the owner of a value that is written into the buffer later, otherwise the name of the
        fill or of the fills that it repeats, otherwise the first reader.
        """
        row = self._values.row[value]
        if (owner := self._later_owner(value)) != NONE:
            return owner, BECOMES
        name, rule = _name_of_fill(self._rules, value)
        if name != NONE:
            return name, rule
        if (upstream := self._upstream_name(value)) != NONE:
            return upstream, MOVED
        if self._named.can_be_owner[row]:
            return row, OWN
        if (reader := self._readers.first_reader(value)) != NONE:
            return reader, READ
        return (row if self._named.has_weak_name(row) else NONE), WEAK

    def _upstream_name(self, value: int) -> int:
        """The name nearest to a fill among the fills that it repeats, or NONE.

        The constant's own name does not count, because XLA shares constants.
        """
        source = self._unnamed_sources[value]
        if self._values.opcode[source] == "constant":
            return NONE
        return _name_of_fill(self._rules, source)[0]

    def own_iotas(self) -> None:
        """Let the first reader own each nameless iota, which has no operand to follow."""
        for value, row in enumerate(self.row):
            if row == NONE and self._is_iota(value):
                self._set(value, self._reader_of_iota(value), READ)

    def _is_iota(self, value: int) -> bool:
        row = self._rules.fusions.root_row.get(value, self._values.row[value])
        return self._named.program.opcode[row] == "iota"

    def _reader_of_iota(self, iota: int) -> int:
        """The first named reader of a value, or NONE.

        If all readers are nameless, the readers of the values that they define are searched, and
        so on.
        """
        level, visited = {iota}, {iota}
        while level:
            readers = {self._readers.first_reader(value) for value in level} - {NONE}
            if readers:
                return min(readers)
            level = {result for value in level for result in self._readers.defined_values(value)}
            level -= visited
            visited |= level
        return NONE

    def own_copies_of_fills(self) -> None:
        """Set the owners of values whose search ended at a fill.

        It is the owner of a value written into the buffer later, otherwise the fill's.
        """
        for value, fill in enumerate(self._search.fill):
            if fill in (NONE, value):
                continue
            owner = self._later_owner(value)
            inherited: str | None = BECOMES
            if owner == NONE:
                owner, inherited = self.row[fill], self.rule[fill]
            rule = self._search.rule[value]
            self._set(value, owner, inherited if rule == OWN or inherited == WEAK else rule)


def _name_of_fill(rules: OwnerRules, value: int) -> tuple[int, str]:
    """The instruction that names a fill, or NONE, and the rule.

    A name inside of a fusion comes first. XLA names a copy after its reader, and a constant inside
    of a fusion after any of its readers, so that these names do not count.
    """
    named, values, fusions = rules.named, rules.values, rules.fusions
    row, opcode = values.row[value], values.opcode[value]
    if opcode in COPIES:
        return NONE, OWN
    if value in fusions.root_row:
        inner = fusions.computing[fusions.root_row[value]]
        if named.can_be_owner[inner] and named.program.opcode[inner] != "constant":
            is_its_own = named.can_be_owner[row] and values.is_single(value)
            return inner, OWN if is_its_own else FUSED
    return (row if named.can_be_owner[row] else NONE), OWN


def _unnamed_source(rules: OwnerRules, value: int) -> int:
    """The value that a nameless fill repeats; NONE for a fill with a name."""
    has_name = _name_of_fill(rules, value)[0] != NONE
    return NONE if has_name else rules.fills.repeated_value(value)
