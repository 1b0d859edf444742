"""Finding pipelines: by module or file, alone, in lists and dicts, or inside an app."""

import sys

import pytest

from holdfast.errors import ConfigurationError, DefinitionError
from holdfast.services.discovery import discover

CODE = """
from holdfast import Holdfast, Pipeline

a, b = Pipeline("a"), Pipeline("b")
for pipeline in (a, b):
    pipeline.step(name="only")(lambda: 1)

both = [a, b]
named = {"x": a}
app = Holdfast("memory:", pipelines=[b])
mixed = [a, 1]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with code, forgotten after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)
    (tmp_path / "some_code.py").write_text(CODE)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ("some_code.py:a", ["a"]),
        ("some_code:a", ["a"]),
        ("some_code.py:both", ["a", "b"]),
        ("some_code.py:named", ["a"]),
        ("some_code.py:app", ["b"]),
        ("some_code.py", ["a", "b"]),
        ("some_code", ["a", "b"]),
    ],
)
def test_pipelines_are_found_by_reference(reference, names):
    pipelines = discover([reference])
    assert list(pipelines.pipelines) == names
    assert set(pipelines.origins.values()) == {reference}


def test_an_app_in_the_code_is_remembered():
    assert discover(["some_code.py:app"]).app is sys.modules["some_code"].app
    assert discover(["some_code.py:a"]).app is None


def test_the_same_pipeline_may_be_found_twice():
    assert list(discover(["some_code.py:a", "some_code.py:both", "some_code:b"]).pipelines) == [
        "a",
        "b",
    ]


def test_two_pipelines_of_one_name_are_refused(folder):
    (folder / "other.py").write_text("from holdfast import Pipeline\na = Pipeline('a')\n")
    with pytest.raises(ConfigurationError, match="both define 'a'"):
        discover(["some_code.py", "other.py"])


def test_a_file_may_import_its_neighbours_and_be_named_like_a_module(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "neighbour.py").write_text("NAME = 'n'\n")
    (folder / "sub" / "types.py").write_text(
        "from holdfast import Pipeline\nfrom neighbour import NAME\np = Pipeline(NAME)\n"
    )
    assert list(discover(["sub/types.py"]).pipelines) == ["n"]
    assert sys.modules["types"].__name__ == "types"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("some_code.py:c", "no 'c' in"),
        ("some_code.py:mixed", "holds int"),
        ("some_code.py:CODE", "no 'CODE'"),
        ("missing.py", "there is no file"),
        ("missing", "there is no module 'missing'"),
        ("missing.part:x", "there is no module 'missing'"),
        ("os.path", "defines no pipeline"),
        ("some_code.py:a.name", "is a str"),
    ],
)
def test_a_wrong_reference_is_explained(reference, message):
    with pytest.raises(ConfigurationError) as caught:
        discover([reference])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (
            "from holdfast import Pipeline\nPipeline('Bad Name')",
            DefinitionError,
            "bad.py:2: pipeline name",
        ),
        ("import does_not_exist", ConfigurationError, "bad.py:1: ModuleNotFoundError"),
        ("x = 1\nx / 0", ConfigurationError, "bad.py:2: ZeroDivisionError: division by zero"),
        ("import asyncio\nasyncio.run(None)", ConfigurationError, "bad.py:2: ValueError"),
        ("import pydantic\npydantic.create_model(1)", ConfigurationError, "bad.py:2: "),
        ("def f(:", ConfigurationError, "bad.py:1:"),
    ],
)
def test_an_error_in_the_code_is_shown_with_its_line(folder, code, kind, message):
    (folder / "bad.py").write_text(code)
    with pytest.raises(kind) as caught:
        discover(["bad.py"])
    assert message in str(caught.value)
    assert "bad" not in sys.modules
