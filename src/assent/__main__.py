"""The program `assent`, which is also `python -m assent`."""

from assent.surfaces.cli.server import collector


def main() -> None:
    collector.starting()
    from assent.kernel import model_builds

    with model_builds.deferred():
        from assent.surfaces.cli.main import main as run  # most of a start: not at import, so that nothing is collected

    collector.imported()
    run()


if __name__ == "__main__":
    main()
