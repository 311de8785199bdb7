"""Programs that use the coordinator. They are run from a checkout (`python -m examples.…`) and are not in the wheel."""
