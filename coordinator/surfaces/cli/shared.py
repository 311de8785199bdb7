"""What all commands have in common: options, what goes where, and exit statuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any, TypeVar

import click

from coordinator.errors import Busy, Closed, CoordinatorError, InvalidInput
from coordinator.operation_refusals import ApprovalExpired, ApprovalMismatch, ApprovalUnknown, OperationUnknown
from coordinator.printable import json_line, printable
from coordinator.refusals import ClaimLost, JobUnknown, Refused

F = TypeVar("F", bound=Callable[..., Any])

_BAR = 30

OK, FAILED, USAGE, REFUSED, NOT_FOUND, CLAIM_LOST, APPROVAL_NEEDED, BUSY = 0, 1, 2, 3, 4, 5, 6, 75

_STATUSES: tuple[tuple[tuple[type[CoordinatorError], ...], int], ...] = (
    ((InvalidInput,), USAGE),
    ((JobUnknown, OperationUnknown), NOT_FOUND),
    ((ClaimLost,), CLAIM_LOST),
    ((ApprovalUnknown, ApprovalExpired, ApprovalMismatch), APPROVAL_NEEDED),
    ((Refused,), REFUSED),
    ((Busy,), BUSY),
    ((Closed, CoordinatorError), FAILED),
)


class NotFound(CoordinatorError):
    """There is nothing of this name or at this place."""

    code = "not_found"


class Command(click.Command):
    """A command whose errors are told with their hints, and decide the exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # characters that the output lacks are written out
        try:
            return super().invoke(ctx)
        except CoordinatorError as error:
            tell(error, as_json=bool(ctx.params.get("as_json")))
            ctx.exit(status_of(error))
        except BrokenPipeError:  # whoever read it has seen enough, such as `head`
            _write_no_more()
            ctx.exit(OK)
        except OSError as error:  # the store has errors of its own, so it was the output, such as on a full disk
            _write_no_more()
            click.echo(f"coordinator: the output cannot be written: {error.strerror}", err=True)
            ctx.exit(FAILED)
        except KeyboardInterrupt:
            ctx.exit(130)


def _write_no_more() -> None:
    """What is still buffered goes nowhere, and does not fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def status_of(error: CoordinatorError) -> int:
    if isinstance(error, NotFound):
        return NOT_FOUND
    return next(status for kinds, status in _STATUSES if isinstance(error, kinds))


def tell(error: CoordinatorError, *, as_json: bool) -> None:
    """People read it on standard error, programs on standard output."""
    click.echo(f"coordinator: {printable(str(error))}", err=True)
    if as_json:
        print_json({"error": {"code": error.code, "message": error.args[0], "hint": error.hint}})


def print_json(value: object) -> None:
    """One object on a line of its own."""
    click.echo(json_line(value))


def show_progress(done: int, of: int) -> None:
    """A bar on standard error, drawn over the one before."""
    filled = _BAR * done // max(of, 1)
    click.echo(f"\r[{'#' * filled:.<{_BAR}}] {done:,} of {of:,} events", nl=done >= of, err=True)


def database_option(*names: str) -> Callable[[F], F]:
    """The workspace that a command reads. The option may have other names, too."""
    return click.option(
        "--database",
        *names,
        "database",
        envvar="COORDINATOR_DATABASE",
        show_envvar=True,
        required=True,
        type=click.Path(dir_okay=False),
        help="The workspace's file.",
    )


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="JSON on standard output, for programs.")(command)
