"""Folds: keyed rows derived from events. Pure functions; they import only `events`."""
