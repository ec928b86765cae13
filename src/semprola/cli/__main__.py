"""`python -m semprola.cli`: the same as `semprola`."""

from semprola.cli.app import main

if __name__ == "__main__":
    main()
