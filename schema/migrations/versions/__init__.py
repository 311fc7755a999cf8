"""A revision for each schema version."""
