"""When something touches a buffer, and how long nothing does: a loop's body runs every turn."""

from .plain_rules import Range, Schedule
from .plain_text import Instruction, Position, called
from .plain_ways import Ways


class Idle:
    """Touches on one module's schedule."""

    def __init__(self, ways: Ways, schedule: Schedule) -> None:
        self.ways, self.module = ways, ways.module
        self.schedule, self.times = schedule, schedule.times()

    def longest(self, touches: list[Range]) -> int:
        """The longest stretch without a touch, from the first to the last."""
        longest, until = 0, min(touches)[1]
        for start, end in sorted(touches):
            longest = max(longest, start - until)
            until = max(until, end)
        return longest

    def touch(self, value: Position, x: Instruction) -> Range:
        """When an instruction touches a value: all of a body, if the value outlives a turn."""
        time = self.times[x.name]
        touched = (time, time)
        for body, inside in self.bodies(x):
            definer = self.ways.at(value)
            from_outside = definer.computation not in inside
            is_phi = definer.computation == body and definer.opcode == "parameter"
            if from_outside or is_phi:
                first, after = self.schedule.spans[body]
                touched = (first, after - 1)
        return touched

    def bodies(self, x: Instruction) -> list[tuple[str, set[str]]]:
        """The loop bodies around an instruction, outwards, each with the computations in it.

        Decision: a condition is one too, it runs in every turn.
        """
        result, name = [], x.computation
        while (caller := self.ways.caller(name)) is not None:
            if caller.opcode == "while":
                result.append((name, self.below(name)))
            name = caller.computation
        return result

    def below(self, name: str) -> set[str]:
        """A computation, those that it calls, and theirs."""
        found, todo = {name}, [name]
        while todo:
            for x in self.module.computations[todo.pop()].instructions:
                fresh = [callee for callee in called(x) if callee not in found]
                found |= set(fresh)
                todo += fresh
        return found
