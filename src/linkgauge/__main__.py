"""Starts the command line, for `python -m linkgauge` and for `linkgauge`."""

import atexit
import gc
import os
import signal
import sys


def main() -> None:
    """Runs the command line. Ctrl-C ends the process without a traceback, even during imports."""
    if "PMI_RANK" in os.environ:
        # What Hydra sends all ranks as one ends: they find out by themselves which.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    gc.set_threshold(100_000)  # loading frees nothing: the collector would take a tenth of it
    atexit.register(gc.freeze)  # a last collection would take 30 ms and more
    try:
        from linkgauge.machine.search_path import plugins_last

        plugins_last()
        from linkgauge.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        module = _unloadable(error)
        if module is None:
            raise
        from linkgauge.model.printable import printable

        said = f"{module} cannot be loaded: {type(error).__name__}: {error}"
        print(f"linkgauge: {printable(said)}", file=sys.stderr)
        sys.exit(3)


def _unloadable(error: Exception) -> str | None:
    """Returns the name and file of the module whose import raised the error, or None."""
    module, at = None, error.__traceback__
    while at is not None:
        names, code = at.tb_frame.f_globals, at.tb_frame.f_code
        if str(names.get("__name__")).partition(".")[0] in ("linkgauge", "__main__"):
            module = None
        elif module is None and code.co_name == "<module>":
            module = f"{names.get('__name__')} ({code.co_filename})"
        at = at.tb_next
    return module


if __name__ == "__main__":
    main()
