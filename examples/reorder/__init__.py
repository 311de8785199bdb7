"""A small ordering system with a database of its own, and a worker that drafts an order in it.

An order is what must not happen twice, and what nobody can take back by killing a process. Read `warehouse.py` (what
there is), `plan.py` (what to buy), `orders.py` (one order for an operation), `work.py` (the worker), `check.py` (what
became of it). `rehearsal.py` is there only to make it go wrong.
"""
