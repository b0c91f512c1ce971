"""``python -m roundelay`` is the command ``roundelay``."""

import signal
import sys

from . import _library


def main() -> int:
    """Runs the command with this program's arguments."""
    # The command answers signals as a program does, not as an interpreter.
    for name in (signal.SIGINT, signal.SIGXFSZ):
        if signal.getsignal(name) is not signal.SIG_IGN or name == signal.SIGXFSZ:
            signal.signal(name, signal.SIG_DFL)
    sys.stdout.flush()
    return _library.main([sys.executable, "-m", "roundelay"], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
