"""Starts the command line, for `python -m linkgauge` and for `linkgauge`."""

import atexit
import gc
import os
import signal
import sys
import threading
from contextlib import suppress


def main() -> None:
    """Runs the command line. Ctrl-C ends it quietly, even while it is being loaded."""
    if "PMI_RANK" in os.environ:
        # What Hydra sends all ranks as one ends: they find out by themselves which.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    gc.set_threshold(100_000)  # loading frees nothing: the collector would take a tenth of it
    try:
        from linkgauge.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as end:
        if isinstance(end.code, int) and not _is_awaited():
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """Ends this process. To free its objects one by one would take a twentieth of a short run."""
    atexit._run_exitfuncs()  # noqa: SLF001  # they remove temporary folders
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):  # it may be closed
            stream.flush()
    os._exit(code)


def _is_awaited() -> bool:
    """Whether a thread, a profiler, a debugger or a person waits for the end of Python. A launcher
    also waits: MPI tells it then that all is well."""
    from linkgauge.machine.processes.launch import is_launched

    monitoring = getattr(sys, "monitoring", None)  # since Python 3.12
    tools = map(monitoring.get_tool, range(6)) if monitoring is not None else ()
    watched = sys.getprofile() or sys.gettrace() or any(tools) or sys.flags.inspect
    lasting = [one for one in threading.enumerate() if not one.daemon]  # the main thread is one
    return bool(watched) or len(lasting) > 1 or is_launched()


if __name__ == "__main__":
    main()
