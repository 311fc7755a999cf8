"""From what the readers found of a program to the rows of the warehouse's tables."""
