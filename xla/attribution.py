"""Attribution: the owner, pass and role of each value; the scope and pass of each instruction."""

from dataclasses import dataclass

from .analysis import Analysis
from .idle import Accesses, find_accesses
from .named_program import NamedProgram
from .names import Kind
from .owners.find import Owners, find_owners
from .owners.readers import Readers
from .passes import OPTIMIZER, OTHER, Pass, Passes, find_passes, pass_of_value
from .reads import OwnedValues, find_reads
from .residuals import Residual, find_residuals
from .roles import Role, find_roles
from .scopes import Scopes, find_scopes
from .values import Values


@dataclass
class Attribution:
    """The attribution of a program's values and instructions.

    Attributes:
        scopes: the scope of each instruction.
        passes: the pass of each instruction.
        owners: the owner of each value.
        value_pass: by value; None without an owner.
        role: by value; None for the table of a tuple.
        residual: by value, its index in `residuals`, or NONE.
        residuals: the largest first.
        accesses: when values are defined and read; None if the times are unknown.
    """

    analysis: Analysis
    scopes: Scopes
    passes: Passes
    owners: Owners
    value_pass: list[Pass | None]
    role: list[Role | None]
    residual: list[int]
    residuals: list[Residual]
    accesses: Accesses | None


def attribute(analysis: Analysis, *, is_scheduled: bool = True) -> Attribution:
    """Find each value's owner, pass and role, and each instruction's scope and pass.

    Args:
        is_scheduled: whether the analysis has the times of the module's figures, also those of an
            estimated schedule. Owners do not depend on times, accesses do.
    """
    program, flow = analysis.program, analysis.flow
    named = NamedProgram(program, flow)
    values = Values(named)
    readers = Readers(values)
    passes = find_passes(named)
    owners = find_owners(values, analysis.liveness.alias_set, readers)
    value_pass: list[Pass | None] = [
        pass_of_value(
            passes,
            row,
            owner,
            uses_definition=rule == "operand" and named.op_name[row].kind is Kind.JOINED,
        )
        for row, owner, rule in zip(flow.row, owners.row, owners.rule, strict=True)
    ]
    owned = OwnedValues(
        analysis, values, readers, owners, passes, value_pass, find_reads(named, passes, readers)
    )
    residual, residuals = find_residuals(owned)
    roles, trains = find_roles(owned, residual)
    if not trains:
        # Instructions after the backward pass depend on the gradients of another quantity, such as
        # a particle's next velocity.
        passes.by_row = [OTHER if pass_ == OPTIMIZER else pass_ for pass_ in passes.by_row]
        value_pass = [OTHER if pass_ == OPTIMIZER else pass_ for pass_ in value_pass]
    return Attribution(
        analysis,
        find_scopes(program, named.op_name, named.caller),
        passes,
        owners,
        value_pass,
        roles,
        residual,
        residuals,
        find_accesses(analysis) if is_scheduled else None,
    )
