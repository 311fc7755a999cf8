"""The engine's attribution and the plain rules' in one form, and where they differ."""

import numpy as np

from memhouse.ingest.readers.lines import split_lines
from memhouse.xla.attribution import Attribution, attribute
from memhouse.xla.columns.bridge_h import read_hlo_text
from memhouse.xla.columns.liveness import derive
from memhouse.xla.columns.program import NONE
from memhouse.xla.owners.candidates import RULES
from memhouse.xla.passes import PASSES
from memhouse.xla.roles import idle_stretches

from ..plain_origins import Rules
from ..plain_passes import OPTIMIZER, OTHER, Passes
from ..plain_residuals import saved_for_backward
from ..plain_text import Position
from ..plain_ways import Ways

# An origin, its rule and its pass; None without an owner.
Answer = tuple[str, str, str] | None


def attribution_of(text: str) -> Attribution:
    """What the engine says of a program."""
    hlo = read_hlo_text(split_lines(text.encode()))
    return attribute(hlo, derive(hlo))


def plain_rules(text: str) -> tuple[Rules, Passes]:
    """The plain rules on a program."""
    rules = Rules(Ways(text))
    return rules, Passes(rules)


def places(found: Attribution) -> list[Position]:
    """The engine's values as the plain rules name them."""
    names = found.derived.program.names.to_pylist()
    rows = found.derived.dataflow.values_table().to_pylist()
    return [
        (
            names[row["instruction_id"]],
            tuple(int(part) for part in row["shape_index"].strip("{}").split(",") if part),
        )
        for row in rows
    ]


def engine_answers(found: Attribution) -> dict[Position, Answer]:
    """Of each value the engine's answer."""
    names = found.derived.program.names.to_pylist()
    origins = found.origins
    numbers = zip(
        origins.instruction.tolist(), origins.rule.tolist(), found.value_pass.tolist(), strict=True
    )
    answers = [
        (names[row], RULES[rule], PASSES[pass_]) if row != NONE else None
        for row, rule, pass_ in numbers
    ]
    return dict(zip(places(found), answers, strict=True))


def plain_answers(rules: Rules, passes: Passes) -> dict[Position, Answer]:
    """Of each array value the plain rules' answer."""
    result: dict[Position, Answer] = {}
    for value in rules.ways.array_values():
        origin = rules.origin(value)
        result[value] = (
            None if origin is None else (origin.instruction, origin.rule, passes.of(value, origin))
        )
    return result


def differences(text: str) -> dict[Position, tuple[Answer, Answer]]:
    """The values of which the engine and the plain rules say different things.

    Only a program that trains has an optimizer. That is of roles, for which there are no plain
    rules: where the engine says so of nothing, what the plain rules give the optimizer is other.
    """
    engine = engine_answers(attribution_of(text))
    plain = plain_answers(*plain_rules(text))
    if not any(answer is not None and answer[2] == OPTIMIZER for answer in engine.values()):
        plain = {
            value: (*answer[:2], OTHER) if answer is not None and answer[2] == OPTIMIZER else answer
            for value, answer in plain.items()
        }
    return {
        value: (engine[value], answer) for value, answer in plain.items() if engine[value] != answer
    }


def engine_scopes(found: Attribution) -> dict[str, str]:
    """The scope of each instruction that has a path."""
    names = found.derived.program.names.to_pylist()
    table = found.scopes["scope"].to_pylist()
    numbers = found.scope.tolist()
    return {name: table[n] for name, n in zip(names, numbers, strict=True) if n != NONE}


# A residual: its values, the largest of these, its layers, its origin, when it is idle.
Row = tuple[frozenset[Position], Position, int, str, int]


def engine_residuals(found: Attribution) -> list[tuple[Row, str | None]]:
    """The engine's residuals, and by what each is read first."""
    names, at = found.derived.program.names.to_pylist(), places(found)
    residuals = found.residuals
    count = len(residuals.value)
    of = residuals.of
    last = np.zeros(count, np.int64)
    touched = of[found.touches.value] != NONE
    np.maximum.at(last, of[found.touches.value[touched]], found.touches.end[touched])
    idle = idle_stretches(found.touches, of, last, np.zeros(count, np.int64))
    rows = []
    for number in range(count):
        values = frozenset(at[value] for value in np.flatnonzero(of == number).tolist())
        largest = int(residuals.value[number])
        length = max(0, int(idle.end[number] - idle.start[number]))
        origin = names[found.origins.instruction[largest]]
        row = (values, at[largest], int(residuals.layers[number]), origin, length)
        reader = int(residuals.reader[number])
        rows.append((row, None if reader == NONE else names[reader]))
    return rows


def plain_residual_rows(text: str) -> list[tuple[Row, tuple[str, ...]]]:
    """The plain rules' residuals, and by what each may be read first."""
    return [
        (
            (
                frozenset(value for members in row.sets for value in members),
                row.value,
                row.layers,
                row.origin.instruction,
                row.idle,
            ),
            row.readers,
        )
        for row in saved_for_backward(text)
    ]
