"""A second, independent reading of the log: what must hold in it is said here anew, apart from the decisions."""
