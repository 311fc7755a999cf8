"""The ways of each value to its origin, opcode by opcode.

An opcode without a rule here follows the last rule: its name owns, else its largest operand
is asked.
"""

import numpy as np

from ....schema.address_space.runs import joined
from ..numbered_program import NONE, Ints, Mask
from .concatenations import Concatenations
from .fills import fills
from .fusions import Fusions
from .named import Named
from .values import GATHERS, Loops, Values
from .ways import ARGUMENT, FUSED, LOOP, MOVED, OPERAND, OWN, WEAK, Ways
from .writes import Writes

# Without a name of their own these only rearrange, cut or repeat their operand.
_REARRANGES = ("convert", "transpose", "reshape", "slice", "reverse", "pad", "broadcast",
               "reduce-precision", "dynamic-slice")  # fmt: skip
_REDUCES = ("all-reduce", "all-reduce-start", "reduce-scatter")


class Steps:
    """Collects the ways of all values.

    Each rule takes its values out of those that are left, so that the first rule that applies
    to a value is the only one.
    """

    def __init__(self, named: Named) -> None:
        self.named = named
        self.values = Values(named)
        self.loops = Loops(self.values)
        self.fusions = Fusions(named)
        self.is_fill, self.repeats = fills(self.values, self.fusions)
        self.concatenations = Concatenations(self.values, self.fusions)
        self.writes = Writes(self.values, self.loops, self.fusions, self.is_fill)
        self.ways = Ways(len(named.dataflow))
        self._left = self.values.is_array.copy()
        self._take(np.flatnonzero(self.values.is_context))
        self._open_fills()
        self._arguments()
        self._merged()
        self._copies()
        self._updates()
        self._slices()
        self._gathers()
        self._reduces()
        self._fusions()
        self._others()

    def _take(self, values: Ints) -> Ints:
        """Those of the values that no rule has taken, taken from now on."""
        values = values[self._left[values]]
        self._left[values] = False
        return values

    def _of(self, *opcodes: str) -> Ints:
        return self._take(self.values.of(*opcodes))

    def _fall_back_on_names(self, values: Ints) -> None:
        """Let the values' own instructions stand in: by what they compute, else by any name."""
        row = self.values.row[values]
        argument = self.named.named_argument[row]
        weak = self.named.has_weak_name[row]
        strong = self.named.owns[row]
        owner = np.where(strong | weak, row, argument)
        rule = np.where(strong, OWN, np.where(argument != NONE, MOVED, WEAK))
        self.ways.own(values, owner, rule)

    def _open_fills(self) -> None:
        found = self._take(np.flatnonzero(self.is_fill))
        self.ways.is_fill[found] = True

    def _arguments(self) -> None:
        found = self._take(np.flatnonzero(self.named.is_entry_parameter[self.values.row]))
        self.ways.own(found, self.values.row[found], ARGUMENT)

    def _merged(self) -> None:
        """What a loop computes in its body, else what enters; of a conditional the branches."""
        loops = self.loops
        phis = self._take(loops.phis)
        at = np.isin(loops.phis, phis)
        self._fall_back_on_names(phis)
        self.ways.follow(phis, loops.computed[at], no_fill=True)
        self.ways.follow(phis, loops.entering[at])
        self.ways.rule[phis] = LOOP
        self.ways.is_loop[phis] = True
        chosen = self._take(loops.chosen)
        self._fall_back_on_names(chosen)
        self.ways.rule[chosen] = LOOP
        results = list(loops.branches(chosen, self.writes.relaid_from))
        for computing in (True, False):
            for phi, computes, value in results:
                asked = computes == computing
                self.ways.follow(phi[asked], value[asked], no_fill=True)
        # If all branches give a fill, the first one's.
        if results:
            self.ways.follow(results[0][0], results[0][2])

    def _copies(self) -> None:
        """A copy's own name is its reader's: it counts only if nothing else does."""
        copies = self._of("copy")
        starts = self._of("copy-start")
        copies = np.concatenate([copies, starts])
        self.ways.follow(copies, self.values.operand(copies, 0))
        self.ways.rule[copies] = MOVED
        self._fall_back_on_names(copies)

    def _updates(self) -> None:
        """A cache that is updated in place is the argument; a stack is what is put into it."""
        writes = self.writes
        found = self._take(writes.values)
        at = np.isin(writes.values, found)
        target, begin, update = writes.target[at], writes.begin[at], writes.update[at]
        carried = (target != NONE) & self.loops.is_loop_phi[writes.relaid_from[target]]
        rule = np.where(carried, LOOP, MOVED)
        first_row = self.values.row[begin]
        is_argument = (begin != NONE) & self.named.is_entry_parameter[first_row]
        self._fall_back_on_names(found)
        self.ways.own(found[is_argument], first_row[is_argument], rule[is_argument])
        stacked = ~is_argument & (writes.begins_filled[at] | carried)
        self._held(found[stacked], self.fusions.moved[update[stacked]], rule[stacked])
        rest = ~is_argument & ~stacked
        inner = np.where(rest, writes.row[at], 0)
        fused = rest & self.named.owns[inner] & self.named.is_fused[inner]
        row = self.values.row[found]
        is_its_own = self.named.owns[row] & self.values.is_single[found]
        self.ways.own(found[fused], inner[fused], np.where(is_its_own, OWN, FUSED)[fused])
        rest &= ~fused & ~self.named.owns[row]
        self.ways.follow(found[rest], target[rest])
        self.ways.rule[found[rest]] = MOVED

    def _slices(self) -> None:
        """A scan takes its inputs apart: the slice is of what was stacked."""
        values, program = self.values, self.named.program
        plain = values.of("dynamic-slice")
        made = values.of("fusion")
        inner = self.fusions.root_of(values, made)
        scanned = self._scanned(inner)
        row = program.operand(values.row[plain], 0)
        of_loop = self.loops.enters[row] & ~self._is_constant(self.named.value_of(row))
        for found, source in (
            (made[scanned != NONE], scanned[scanned != NONE]),
            (plain[of_loop], self.named.value_of(row[of_loop])),
        ):
            left = self._left[found]
            taken = self._take(found)
            self._fall_back_on_names(taken)
            self.ways.follow(taken, source[left])
            self.ways.rule[taken] = LOOP

    def _scanned(self, inner: Ints) -> Ints:
        """The value outside of a loop's fusion that each fused instruction takes a slice of.

        NONE for what is no slice of what the loop's body gets.
        """
        program, fusions = self.named.program, self.fusions
        root = fusions.sliced_from[inner]
        slices = np.flatnonzero(program.opcode.is_one_of("dynamic-slice")[root])
        outer = self.named.outer_operand[fusions.sliced_from[program.operand(root[slices], 0)]]
        enters = (outer != NONE) & self.loops.enters[outer]
        slices, whole = slices[enters], self.named.value_of(outer[enters])
        tells = ~self._is_constant(whole)
        found = np.full(len(inner), NONE)
        found[slices[tells]] = whole[tells]
        return found

    def _is_constant(self, values: Ints) -> Mask:
        """Which values are constants: the name of a slice says more than a constant's."""
        row = self.values.row[values]
        found: Mask = self.named.program.opcode.is_one_of("constant")[row] & (values != NONE)
        return found

    def _gathers(self) -> None:
        """A gathered parameter is the parameter; another gathered array is its reader's."""
        found = self._of(*GATHERS)
        source = self.values.operand(found, self.values.element[found])
        begin = np.where(source != NONE, self.writes.relayout_of[source], NONE)
        row = self.values.row[begin]
        is_argument = (begin != NONE) & self.named.is_entry_parameter[row]
        self._fall_back_on_names(found)
        self.ways.own(found[is_argument], row[is_argument], ARGUMENT)
        nameless = ~is_argument & ~self.named.owns[self.values.row[found]]
        self.ways.follow(found[nameless], source[nameless])
        self.ways.rule[found[nameless]] = MOVED

    def _reduces(self) -> None:
        """One name cannot say what several reduced arrays are."""
        found = self._of(*_REDUCES)
        row = self.values.row[found]
        self._fall_back_on_names(found)
        asks = ~self.named.owns[row] | (self.named.program.operand_count[row] > 1)
        asking = found[asks]
        self.ways.follow(asking, self.values.operand(asking, self.values.element[asking]))
        self.ways.rule[asking] = MOVED

    def _fusions(self) -> None:
        """The first instruction with a name, back from the root that gives the element."""
        named, fusions = self.named, self.fusions
        found = self._of("fusion")
        row = self.values.row[found]
        single = self.values.is_single[found] & named.owns[row]
        self._fall_back_on_names(found)
        root = fusions.root_of(self.values, found)
        first = fusions.computing[root]
        known = named.owns[first]
        self.ways.own(found[known], first[known], np.where(single[known], OWN, FUSED))
        found, root, single = found[~known], root[~known], single[~known]
        found, root = found[~single], root[~single]
        self._held(found, root, np.full(len(found), FUSED))
        passed = fusions.from_outside(fusions.some_elements, root)
        unknown = (self.ways.owner[found] == NONE) | (self.ways.owner_rule[found] == WEAK)
        unknown &= passed == NONE
        nameless = unknown & (self.ways.owner[found] == NONE)
        self.ways.own(found[nameless], fusions.weak(root[nameless]), WEAK)
        self._ask_operands(found[unknown])

    def _held(self, values: Ints, inner: Ints, rule: Ints) -> None:
        """Let values be what fused or other instructions hold.

        `inner` is an instruction for each: if it is fused, the nearest name inside owns, unless
        the instruction only moves an operand of the fusion; else its value is followed.
        """
        named, fusions = self.named, self.fusions
        values_of = np.where(named.is_fused[inner], NONE, named.value_of(inner))
        passed = fusions.from_outside(fusions.some_elements, inner)
        piece = self.concatenations.piece(fusions.same_elements[inner], passed)
        passed = np.where(piece != NONE, piece, passed)
        first = fusions.computing[inner]
        known = named.is_fused[inner] & named.owns[first]
        sliced = self._scanned(inner)
        known &= sliced == NONE
        passed = np.where(known, NONE, np.where(sliced != NONE, sliced, passed))
        follows = np.where(values_of != NONE, values_of, passed)
        self.ways.own(values[known], first[known], rule[known])
        self.ways.follow(values, follows)
        self.ways.rule[values] = rule
        unknown = named.is_fused[inner] & ~known & (passed == NONE)
        nearest = fusions.nearest(inner[unknown])
        hit = nearest != NONE
        self.ways.own(values[unknown][hit], nearest[hit], rule[unknown][hit])

    def _others(self) -> None:
        """A name owns; without one, what rearranges is its operand, and others guess."""
        named, values = self.named, self.values
        found = self._take(np.flatnonzero(self._left))
        row = values.row[found]
        self._fall_back_on_names(found)
        asks = ~named.owns[row] & (named.named_argument[row] == NONE)
        found, row = found[asks], row[asks]
        rearranges = named.program.opcode.is_one_of(*_REARRANGES)[row]
        # XLA puts the pieces of one array together again.
        rearranges |= named.program.custom_call_target.is_one_of("ConcatBitcast")[row]
        is_whole, whole = self.concatenations.nearly_all(row)
        rearranges |= is_whole
        moved, source = found[rearranges], np.where(is_whole, whole, values.operand(found, 0))
        source = source[rearranges]
        piece = self.concatenations.piece(row[rearranges], source)
        self.ways.follow(moved, np.where(piece != NONE, piece, source))
        self.ways.rule[moved] = MOVED
        self._ask_operands(found[~rearranges & (named.program.parameter_number[row] == NONE)])

    def _ask_operands(self, found: Ints) -> None:
        """Guess: follow the operands, the largest first, that are no fills."""
        program = self.named.program
        row = self.values.row[found]
        counts = program.operand_count[row]
        value = np.repeat(found, counts)
        operand = program.operands[joined(program.operand_start[row], counts)]
        source = self.named.value_of(operand)
        good = (source != NONE) & ~self.is_fill[source] & self.values.is_array[source]
        value, operand, source = value[good], operand[good], source[good]
        order = np.lexsort((-self.named.bytes[operand], value))
        self.ways.follow(value[order], source[order], no_fill=True)
        self.ways.rule[found] = OPERAND
