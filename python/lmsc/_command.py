"""The command `lmsc`."""

from __future__ import annotations

import signal
import sys

from . import _lmsc


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    # Signals are those of a program that is not written in Python.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_lmsc.execute(sys.argv[1:]))
