"""Models that a start imports are built at their first use, and behave as others do."""

from __future__ import annotations

import warnings

import pytest
from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from assent.kernel import model_builds


def defined() -> type[BaseModel]:
    class Inner(BaseModel):
        count: int

    class Outer(BaseModel):
        inner: Inner

    return Outer


def is_built(model: type[BaseModel]) -> bool:
    return model.__pydantic_complete__


def test_a_deferred_model_is_built_at_its_first_use() -> None:
    with model_builds.deferred():
        model = defined()
    assert not is_built(model)
    with pytest.raises(ValidationError):
        model.model_validate({"inner": {"count": "many"}})
    assert is_built(model)
    assert model.model_validate({"inner": {"count": 1}}).model_dump() == {"inner": {"count": 1}}


def test_models_outside_are_built_at_their_definition() -> None:
    with model_builds.deferred():
        base = defined()

    class Below(base):  # type: ignore[valid-type, misc]
        more: int = 0

    assert is_built(Below)
    assert is_built(defined())
    assert Below.model_validate({"inner": {"count": 1}}).more == 0


def test_mistake_in_a_model_outside_is_reported_at_its_definition() -> None:
    with model_builds.deferred():
        base = defined()
    with pytest.raises(PydanticUserError):

        class Below(base):  # type: ignore[valid-type, misc]
            mistake = 1


def test_an_adapter_of_a_deferred_model_is_built_at_once() -> None:
    with model_builds.deferred():
        model = defined()
    adapter = TypeAdapter(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert adapter.validate_python({"inner": {"count": 1}}).model_dump() == {"inner": {"count": 1}}
    assert adapter.pydantic_complete
