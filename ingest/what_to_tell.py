"""Lines that tell what an ingest did."""

from ..schema.stores.base import Deleted


def some_of(names: list[str]) -> str:
    """The distinct names, at most three of them."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return ", ".join(distinct[:3]) + more


def what_was_replaced(replaced: Deleted, source: str) -> str:
    """The line that says what a replaced run held."""
    (run_id,) = replaced.run_ids
    dropped = " and ".join(
        f"{number} {what}" if number == 1 else f"{number} {what}s"
        for number, what in ((replaced.dumps, "dump"), (replaced.modules, "module"))
    )
    return f"replaced run {run_id}: {dropped} of {source} dropped"
