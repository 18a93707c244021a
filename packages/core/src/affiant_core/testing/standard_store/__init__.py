"""The standard tests of a Docket store, by subject."""
