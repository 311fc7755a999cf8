"""The pytest plugin, a skin of the library: limits on the memory of what tests compile."""
