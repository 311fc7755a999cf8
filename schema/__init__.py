"""The warehouse's tables, and opening, creating and upgrading a warehouse."""
