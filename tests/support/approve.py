"""Renews what is approved, by `make approve`: words, rows, and what the documentation shows."""

from . import golden, pages, words

if __name__ == "__main__":
    words.approve()
    golden.approve()
    for name in pages.WITH_COMMANDS:
        pages.renew(name)
    for page in pages.WITH_PROMPTS.values():
        pages.renew_examples(page)
