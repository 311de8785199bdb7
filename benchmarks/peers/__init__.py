"""Other libraries that keep jobs in SQLite, and ours, doing the same cycle: enqueue, claim, complete.

A module each: `cycles_per_second(folder, workers, seconds)` measures it at its own defaults, in a process of its own.
"""
