"""`python -m linkgauge` is the command line."""

from linkgauge.cli.main import main

if __name__ == "__main__":
    main()
