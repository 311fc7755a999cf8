"""The canned views and the checks of `verify`: SQL files, and what lists them."""
