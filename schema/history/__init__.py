"""The history of programs: series of dumps over the runs of a branch and suite."""
