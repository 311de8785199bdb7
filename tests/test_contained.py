"""What a mutant leaves running is ended: it could keep a processor busy for hours."""

import os
import signal
import subprocess
import sys

import pytest

from tests.contained import TIME_UP
from tests.contained import __file__ as CONTAINED

LEFT_BEHIND = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if (pid := os.fork()) == 0:
        while True:
            time.sleep(60)
    print(pid, flush=True)
    os._exit(0)
os.wait()
"""


def contained(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, CONTAINED, "20", sys.executable, "-c", program]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody adopts those that have left the session")
@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)", TIME_UP),
    ],
)
def test_whatever_a_command_leaves_behind_is_gone_however_it_ended(ending: str, status: int) -> None:
    ended = contained(LEFT_BEHIND + ending)

    assert ended.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(int(ended.stdout), 0)
