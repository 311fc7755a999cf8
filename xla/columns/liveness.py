"""Names of `bridge_d`, for callers that are not yet plain."""

from .bridge_d import Derived, Liveness, derive, derive_all, reordered

__all__ = ["Derived", "Liveness", "derive", "derive_all", "reordered"]
