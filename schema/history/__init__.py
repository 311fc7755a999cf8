"""Which run and which dump follows which: lineages, chains, and what is gone."""
