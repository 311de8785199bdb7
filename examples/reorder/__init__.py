"""A small ordering system with a database of its own, and a worker that drafts an order in it once a person approves.

An order is what must not happen twice, and what nobody can take back by killing a process. README.md says where to
look; `python -m examples.reorder` plays what can befall an order.
"""
