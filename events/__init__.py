"""Facts: what is written to the log, and how. Imports nothing else of this project."""
