"""The schema of an answer: strict for everybody, and refused early where it can't be."""

from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from holdfast.adapters.llm.schema import for_openapi, schema_of
from holdfast.errors import Fix
from holdfast.testing.fakellm.brains import smallest
from holdfast.testing.fakellm.schemas import check_openapi, check_strict


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    """A leaf."""

    name: str = Field(min_length=1, max_length=20, pattern=r"\w+")
    size: float | None = Field(None, ge=0)
    colour: Colour = Colour.RED


class Other(BaseModel):
    kind: Literal["other"]
    amount: int


class Tree(BaseModel):
    leaves: list[Leaf] = Field(default_factory=list, max_length=100, description="All of them.")
    best: Leaf
    either: Leaf | Other
    kind: Literal["oak", "elm"] = "oak"
    old: bool = False


def test_every_object_is_closed_and_everything_is_required():
    schema = schema_of(Tree, "trees")
    check_strict(schema, "trees")
    assert schema["title"] == "trees"
    assert schema["required"] == ["leaves", "best", "either", "kind", "old"]
    assert schema["properties"]["leaves"]["items"] == schema["properties"]["best"]
    assert schema["properties"]["leaves"]["description"] == "All of them."
    assert schema["properties"]["best"]["properties"]["size"]["anyOf"] == [
        {"type": "number"},
        {"type": "null"},
    ]


def test_an_answer_to_the_schema_is_an_answer_to_the_model():
    leaf = {"name": "a", "size": None, "colour": "blue"}
    assert (
        Tree.model_validate(
            {**smallest(schema_of(Tree, "trees")), "best": leaf, "either": leaf}
        ).kind
        == "oak"
    )


def test_googles_older_form_has_neither_null_nor_closed_objects():
    schema = for_openapi(schema_of(Tree, "trees"))
    check_openapi(schema, "trees")
    assert schema["properties"]["best"]["properties"]["size"] == {
        "type": "number",
        "nullable": True,
    }
    assert "additionalProperties" not in str(schema)


def test_a_schema_is_made_once():
    assert schema_of(Tree, "trees") is schema_of(Tree, "trees")


class FreeKeys(BaseModel):
    counts: dict[str, int]


class Anything(BaseModel):
    value: Any


class Pair(BaseModel):
    both: tuple[int, str]


class Endless(BaseModel):
    children: list["Endless"]


class Nothing(BaseModel):
    pass


@pytest.mark.parametrize("answer", [FreeKeys, Anything, Pair, Endless, Nothing])
def test_what_no_vendor_enforces_is_refused(answer):
    with pytest.raises(Fix, match="can't be an answer"):
        schema_of(answer, "x")
