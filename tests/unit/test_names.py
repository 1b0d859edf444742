"""Names of pipelines, steps, tenants and labels, and how they become parts of paths."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Holdfast, Pipeline
from holdfast.adapters.files.blobs import SEGMENT, FileBlobs
from holdfast.errors import DefinitionError, InvalidInput
from holdfast.model.names import check_labels, check_tenant, path_part

TENANTS = ["default", "User-A", "user-a", "ada@example.org", "Zq3VXk0LhGd7m2QwErTyUiOpAsD2"]
HOSTILE = [
    "a/b",
    "a\\b",
    "",
    ".",
    "..",
    "../x",
    "/etc",
    " a",
    "a b",
    "a\n",
    "a\0b",
    "аcme",
    "x" * 129,
    "-a",
    "%2e",
]


@pytest.mark.parametrize("tenant", [*TENANTS, "a..b", "x..", "auth0|5f7c", "T" * 128])
def test_tenants_are_what_owners_are_known_by(tenant):
    check_tenant(tenant)


@pytest.mark.parametrize("tenant", HOSTILE)
def test_what_can_not_be_a_tenant(tenant):
    with pytest.raises(InvalidInput, match="not usable"):
        check_tenant(tenant)


def test_plain_names_stay_as_they_are_in_paths():
    for name in ("default", "acme-2", "a_b", "0"):
        assert path_part(name) == name
    assert path_part("User-A") == "t-.55ser-.41"


NAMES = st.text(min_size=1, max_size=128) | st.text(alphabet="aA.t-h~%5/", min_size=1, max_size=9)


@given(NAMES, NAMES)
def test_two_names_never_share_a_part_of_a_path(first, second):
    parts = path_part(first).lower(), path_part(second).lower()
    assert (parts[0] == parts[1]) == (first == second)


@given(NAMES)
def test_a_part_never_leads_out_of_its_folder(name):
    part = path_part(name)
    assert re.fullmatch(r"[a-z0-9._-]{1,201}", part)
    assert ".." not in part
    assert not part.startswith(".")


@given(st.sampled_from([*TENANTS, "a..b", "x..", "T" * 128]))
def test_every_tenant_can_have_blobs_in_files(tenant):
    assert SEGMENT.fullmatch(path_part(tenant))


def test_blobs_of_tenants_stay_in_folders_of_their_own(tmp_path):
    big = Pipeline("big", input=dict)

    @big.step
    def size(request: dict) -> int:
        return len(request["text"])

    async def story():
        blobs = FileBlobs(tmp_path / "blobs")
        async with Holdfast("memory:", [big], blobs=blobs) as app:
            for tenant in [*TENANTS, "a..b"]:
                run = await app.submit(big, {"text": "x" * 50_000}, tenant=tenant)
                assert await run.result() == 50_000

    asyncio.run(story())
    folders = {path.name for path in (tmp_path / "blobs").iterdir() if path.name[0] != "."}
    assert folders == {path_part(tenant) for tenant in [*TENANTS, "a..b"]}
    assert [path.name for path in tmp_path.iterdir()] == ["blobs"]


def test_pipelines_and_steps_may_have_capitals():
    compute = Pipeline("Compute_V2")

    @compute.step(name="API_GENERATION")
    def api() -> int:
        return 1

    @compute.step(name="GIT_OPERATIONS")
    def git(API_GENERATION: int) -> int:  # noqa: N803  (a step)
        return API_GENERATION + 1

    async def story():
        async with Holdfast("memory:", [compute]) as app:
            return await (await app.submit(compute)).result()

    assert asyncio.run(story()) == 2


def test_steps_that_differ_by_capitals_alone_are_refused():
    pipeline = Pipeline("p")

    @pipeline.step(name="DNS_UPDATE")
    def dns() -> int:
        return 1

    with pytest.raises(DefinitionError, match="capitals alone"):
        pipeline.step(name="dns_update")(lambda: 1)


# --- labels ---------------------------------------------------------------------------------------


def test_labels_are_few_and_small_texts():
    check_labels({"user_id": "42", "config.model": "ünï", "trigger_by": "x" * 255})


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({f"n{number}": "x" for number in range(17)}, "at most 16"),
        ({"": "x"}, "not usable"),
        ({"a b": "x"}, "not usable"),
        ({"x" * 65: "x"}, "not usable"),
        ({"a": ""}, "1 to 255"),
        ({"a": "x" * 256}, "1 to 255"),
        ({"a": "line\nbreak"}, "printable"),
        ({"a": 42}, "is a int: labels are texts, for example '42'"),
    ],
)
def test_labels_that_are_refused(labels, reason):
    with pytest.raises(InvalidInput, match=reason):
        check_labels(labels)
