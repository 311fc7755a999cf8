"""The owner of each value: the instruction whose result the value holds.

The owner is not always the instruction that defines the value: a copy defines a value, but the
owner is the instruction that computed the copied array. The rules are in `rules.py`; most of them
lead from a value to another one, whose owner it shares.
"""
