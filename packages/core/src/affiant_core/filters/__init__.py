"""The layers of the onion, each one room; the order that they stand in is one list, in ``affiant_core.affiant``."""
