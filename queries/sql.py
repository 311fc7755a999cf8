"""The user's own SQL."""

from collections.abc import Sequence

from ..schema.stores.base import Store
from .result import Rows


def sql(store: Store, query: str, parameters: Sequence[object] = ()) -> Rows:
    """The rows of a query; `$1` and so on in it are the parameters. Raises QueryError."""
    return Rows(store.rows(query, parameters))
