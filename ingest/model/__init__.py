"""Turns a program's parts into rows of the warehouse's tables; computes memory from HLO text."""
