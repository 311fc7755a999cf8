"""The stores: where the tables are kept."""
