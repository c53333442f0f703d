"""Starts the command line, for `python -m linkgauge` and for `linkgauge`."""

import atexit
import gc
import os
import signal
import sys


def main() -> None:
    """Runs the command line. Ctrl-C ends it quietly, even while it is being loaded."""
    if "PMI_RANK" in os.environ:
        # What Hydra sends all ranks as one ends: they find out by themselves which.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    gc.set_threshold(100_000)  # loading frees nothing: the collector would take a tenth of it
    atexit.register(gc.freeze)  # a last collection would take 30 ms and more
    try:
        from linkgauge.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
