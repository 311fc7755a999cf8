"""The report of a difference: two modules side by side, and what leads from one to the other."""
