"""The revisions as files: numbered without a gap, each on top of the one before."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from assent.kernel.store import migrations

FILES = sorted((Path(migrations.__file__).parent / "revisions" / "versions").glob("[0-9]*.py"))


def load(file: Path) -> ModuleType:
    spec = spec_from_file_location(file.stem, file)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_revisions_are_numbered_without_gaps() -> None:
    revisions = [load(file) for file in FILES]
    assert [revision.revision for revision in revisions] == [f"{number:04}" for number in range(1, len(FILES) + 1)]
    assert [revision.down_revision for revision in revisions] == [None, *(each.revision for each in revisions[:-1])]


def test_a_file_is_named_after_its_revision() -> None:
    assert all(file.name.startswith(load(file).revision) for file in FILES)


def test_the_newest_is_known_from_the_names_alone() -> None:
    assert migrations.newest() == load(FILES[-1]).revision


def test_every_revision_has_a_description() -> None:
    assert all(load(file).__doc__ for file in FILES)
