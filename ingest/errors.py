"""The error for a wrong dump; reading shapes raises it too, so it stands with the schema."""

from ..schema.dump_error import DumpError

__all__ = ["DumpError"]
