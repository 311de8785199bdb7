"""The rules. Pure functions: a command, the rows, the moment in; events out, or a refusal."""
