"""The command `kwlab`. `common` has what its commands share; each command is in the module of its
group."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from .. import libraries
from .. import plan as plans
from .common import app, complain, console

# `kwlab --help` lists the commands in the order of these.
from . import measure, comparison, execute, results, more


def main():
    """Runs the command; errors of the user are one sentence and status 2."""
    # so that a run under `timeout` ends its ranks
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        app()
    except (plans.PlanError, ValueError, libraries.Unavailable, libraries.Failed) as error:
        complain(str(error))
    except sqlite3.Error as error:
        complain(f"the dataset cannot be used: {error} (--data names another)")
    except OSError as error:
        said = error.strerror or str(error)
        complain(f"{error.filename}: {said}" if error.filename else said)
    except subprocess.TimeoutExpired as late:
        complain(f"{Path(late.cmd[0]).name} took longer than {late.timeout:g} s (--limit)")
