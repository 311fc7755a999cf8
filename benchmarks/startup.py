"""The start-up time of the command: its help, and a query of one line."""

from bench import Bench, Row, measure, seconds, verdict
from process import Finished, in_turn, memhouse

_HELP_SECONDS = 0.35
_SQL_SECONDS = 0.6


def startup(bench: Bench) -> list[Row]:
    """Time `memhouse --help` and `memhouse sql`."""
    helped, asked = in_turn(bench.rounds, lambda: memhouse("--help"), lambda: one_line(bench))
    return [
        _row("`memhouse --help`", seconds(helped), _HELP_SECONDS),
        _row("`memhouse sql` of one line", seconds(asked), _SQL_SECONDS),
    ]


def one_line(bench: Bench) -> Finished:
    """Run the smallest command on a warehouse."""
    return memhouse("sql", "--db", bench.dumps.warehouse, "SELECT 1")


def _row(what: str, took: float, limit: float) -> Row:
    return Row(what, f"{took:.2f} s", verdict(took, limit, f"{limit:g} s"))


if __name__ == "__main__":
    measure([startup])
