"""Under which name an author's file is imported, and what is left of a traceback."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from assent.errors import LoadError
from assent.runs.project.imports import authors_code, import_object, put_on_path
from tests.unit.engine.conftest import Project


def imported(project: Project, files: dict[str, str], source: str, **document: Any) -> Any:
    manifest = project(files, graphs={"agent": source}, **document)
    put_on_path(manifest.roots)
    entry = manifest.graphs["agent"].source
    with authors_code(entry, manifest.roots):
        return import_object(entry, manifest.roots)


class_code = "class Plan: pass\n"


def test_a_file_gets_its_real_name(project: Project) -> None:
    assert imported(project, {"plans.py": class_code}, "./plans.py:Plan").__module__ == "plans"


def test_relative_imports_work_in_a_package(project: Project) -> None:
    files = {
        "src/shop/__init__.py": "",
        "src/shop/plans.py": class_code,
        "src/shop/agent.py": "from .plans import Plan\n",
    }
    plan = imported(project, files, "./src/shop/agent.py:Plan", dependencies=["./src"])
    assert plan.__module__ == "shop.plans"
    assert sys.modules["shop.plans"].Plan is plan


def test_a_folder_without_init_is_a_package_too(project: Project) -> None:
    files = {"flows/plans.py": class_code, "flows/agent.py": "from flows.plans import Plan\n"}
    assert imported(project, files, "./flows/agent.py:Plan").__module__ == "flows.plans"


def test_a_module_path_is_imported_as_such(project: Project) -> None:
    files = {"store_front/__init__.py": "", "store_front/plans.py": class_code}
    assert imported(project, files, "store_front.plans:Plan").__module__ == "store_front.plans"


@pytest.mark.parametrize("file", ["calendar.py", "my-agent.py", "2026/agent.py"])
def test_taken_or_invalid_module_name_is_replaced_by_one_from_the_path(project: Project, file: str) -> None:
    module = imported(project, {file: class_code}, f"./{file}:Plan").__module__
    assert module.startswith("assent_project__")
    assert module in sys.modules


def test_generated_module_name_does_not_depend_on_the_project_folder(project: Project, tmp_path: Path) -> None:
    plan = imported(project, {"my-agent.py": class_code}, "./my-agent.py:Plan")
    assert plan.__module__ == "assent_project__my_agent"


def test_a_file_is_executed_once(project: Project) -> None:
    files = {"my-agent.py": class_code}
    first = imported(project, files, "./my-agent.py:Plan")
    assert imported(project, files, "./my-agent.py:Plan") is first


def test_a_failed_module_is_not_left_behind(project: Project) -> None:
    for message in ("first", "second"):
        with pytest.raises(LoadError, match=message):
            imported(project, {"my-agent.py": f"raise ValueError('{message}')"}, "./my-agent.py:Plan")


def test_missing_import_of_a_package_is_named(project: Project) -> None:
    files = {"shop/__init__.py": "import no_such_thing\n", "shop/agent.py": class_code}
    with pytest.raises(LoadError, match="No module named 'no_such_thing'") as caught:
        imported(project, files, "./shop/agent.py:Plan")
    assert caught.value.hint == "install no_such_thing, or name its folder in dependencies"


def test_the_traceback_keeps_the_causes(project: Project, tmp_path: Path) -> None:
    code = "try:\n    {}['key']\nexcept KeyError as exc:\n    raise RuntimeError('no key') from exc\n"
    with pytest.raises(LoadError) as caught:
        imported(project, {"my-agent.py": code}, "./my-agent.py:Plan")
    details = caught.value.details
    assert "KeyError: 'key'" in details
    assert details.rstrip().endswith("RuntimeError: no key")
    assert details.count(f'File "{tmp_path}/my-agent.py"') == 2
    assert "importlib" not in details
    assert "assent/runs" not in details


def test_an_error_below_the_project_shows_the_projects_line(project: Project) -> None:
    with pytest.raises(LoadError) as caught:
        imported(project, {"my-agent.py": "import json\nconfig = json.loads('{')\n"}, "./my-agent.py:Plan")
    assert "config = json.loads('{')" in caught.value.details
    assert "decoder.py" not in caught.value.details
