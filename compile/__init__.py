"""Compiles programs: to record their dumps, to find what fits, to measure an edit."""
