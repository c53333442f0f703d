"""`python -m linkgauge` and `linkgauge` are the command line."""

import sys


def main() -> None:
    """Runs the command line; Ctrl-C ends it quietly even while it is being loaded."""
    try:
        from linkgauge.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
