"""Between Python values and the JSON that is stored."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast.errors import DefinitionError, InvalidInput
from holdfast.model.codec import Codec, codec_for


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Pair:
    left: str
    right: list[int]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 3),
        (None, None),
        (str, "naïve ☃"),
        (list[int], [1, 2]),
        (dict[str, Point], {"a": Point(x=1)}),
        (Point, Point(x=1, y=2)),
        (Pair, Pair("a", [1])),
        (datetime, datetime(2024, 1, 2, tzinfo=UTC)),
        (Point | None, None),
        (Any, {"a": [1, None, "x"]}),
    ],
)
def test_a_value_comes_back_as_it_was(kind, value):
    codec = Codec(kind)
    assert codec.decode(codec.encode(value)) == value


def test_plain_data_is_accepted_for_a_model():
    assert codec_for(Point).validate({"x": 1}) == Point(x=1)


def test_what_does_not_fit_is_explained_field_by_field():
    with pytest.raises(InvalidInput, match=r"Point is not valid: x: .*valid integer"):
        codec_for(Point).validate({"x": "one"})


def test_an_explanation_stays_short():
    with pytest.raises(InvalidInput, match=r"\(and 15 more\)"):
        codec_for(list[int]).validate(["x"] * 20)


def test_an_explanation_does_not_repeat_the_payload():
    with pytest.raises(InvalidInput) as caught:
        codec_for(Point).validate({"x": "sk-secret"})
    assert "sk-secret" not in str(caught.value)


def test_half_a_character_can_not_be_stored():
    with pytest.raises(InvalidInput, match="can't be stored as str"):
        codec_for(str).encode("\ud800")


def test_a_type_without_json_is_refused_with_the_remedy():
    class Socket: ...

    with pytest.raises(DefinitionError, match="use a pydantic model, a dataclass, or plain lists"):
        Codec(Socket)


def test_the_schema_changes_with_the_shape_of_the_type():
    class Before(BaseModel):
        a: int

    class After(BaseModel):
        a: int
        b: str = ""

    After.__name__ = "Before"
    assert Codec(Before).schema == Codec(Before).schema
    assert Codec(Before).schema != Codec(After).schema


def test_a_codec_is_made_once():
    assert codec_for(Point) is codec_for(Point)
