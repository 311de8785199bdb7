"""The command line."""

from coordinator.surfaces.cli.group import command_line as command_line
