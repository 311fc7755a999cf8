"""Origins: which instruction owns a value, and the scope and pass of its work."""
