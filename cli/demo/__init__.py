"""The demo: dumps that come with the package, and a walk through five commands on them."""
