"""`python -m assent` is `assent`."""

from assent.surfaces.cli.main import main

if __name__ == "__main__":
    main()
