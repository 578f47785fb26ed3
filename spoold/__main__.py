"""`python -m spoold` is `spool`.

Law: nothing is done here but to call `main`, so both commands are the same program.
"""

from spoold.faces.cli import main

if __name__ == "__main__":
    main()
