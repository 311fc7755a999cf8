"""A module's memory, worked out from what the readers found."""
