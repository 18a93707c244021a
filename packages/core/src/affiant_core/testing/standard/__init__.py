"""The standard tests, by subject. ``bridge_suite`` puts them together."""
