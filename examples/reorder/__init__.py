"""A small ordering system with a database of its own. Read `warehouse.py` (what there is), `plan.py` (what to buy)."""
