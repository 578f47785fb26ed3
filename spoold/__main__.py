"""`python -m spoold` is `spool`."""

from spoold.faces.cli import main

if __name__ == "__main__":
    main()
