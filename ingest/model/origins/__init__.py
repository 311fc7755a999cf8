"""Whose memory a value is: the instruction whose result a value holds, and what that means."""
