"""`python -m semprola`: the command line."""

from semprola.cli import main

if __name__ == "__main__":
    main()
