"""`coordinator` itself: its commands, each loaded when it is called."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import click

COMMANDS = {
    "at": "The workspace as it was at a position or a time.",
    "audit": "Does the log hold? Every rule is read anew, every view folded anew.",
    "demo": "Real processes index a folder; a late worker is refused.",
    "diff": "What changed between two moments.",
    "explain": "One event: what it changed, and for a refusal what led to it.",
    "head": "Where the log ends, to be noted elsewhere for a later audit.",
    "timeline": "What happened, a line an event or a lane a worker.",
    "who": "Who holds a path, above it or below it, and until when.",
    "why": "Why a job cannot be claimed, and what would change it.",
}
"""Each is the function of its name in the module of its name, loaded only when it is called."""

_EXAMPLE = """\b
Example:
  coordinator demo --keep       watch a late worker be refused, and keep what is left
  coordinator timeline --database work.db --job parser
  coordinator audit --database work.db
"""


class _Commands(click.Group):
    """Knows its commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"coordinator.surfaces.cli.{cmd_name}")
        return getattr(module, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"coordinator {_version()}")
        context.exit()


def _version() -> str:
    try:
        return version("async-coordinator")
    except PackageNotFoundError:
        return "(from its source tree, not installed)"


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    epilog=_EXAMPLE,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.pass_context
def command_line(context: click.Context) -> None:
    """Jobs, claims and reserved paths for agents that share one file: a worker that was replaced cannot write.

    Exit status: 0 ok, 1 failure, 2 a call that makes no sense, 3 refused, 4 not found, 5 claim lost, 6 approval needed,
    75 busy, 130 Ctrl-C.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)
