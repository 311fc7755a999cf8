"""XLA's shapes and their bytes: for who reads dumps and for who asks what sizes would be."""
