"""How full memory is over time: for who stores figures and for who asks what they would be."""
