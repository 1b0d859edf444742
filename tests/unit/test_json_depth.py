"""How deeply a body is nested is found without following it, and in time in proportion to its
length."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api.bodies import MAX_DEPTH, check_depth
from holdfast.api.problems import Problem

SIZE = 4_000_000
MOST_SECONDS = 5.0
"""Of processor time; it takes half a second. What grows with the square takes hours."""


def is_too_deep(body: bytes) -> bool:
    try:
        check_depth(body)
    except Problem as problem:
        return problem.document.code == "too-deep"
    return False


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


texts = st.text(alphabet='[]{}"\\a,: \n')
values = st.recursive(
    texts | st.none() | st.integers(),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(texts, parts, max_size=4),
    max_leaves=30,
)


@given(value=values, more=st.integers(MAX_DEPTH - 5, MAX_DEPTH + 5))
def test_the_depth_is_that_of_the_value(value: object, more: int) -> None:
    for _ in range(more):
        value = [value, "]"]
    assert is_too_deep(json.dumps(value).encode()) == (depth_of(value) > MAX_DEPTH)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 70 + b'"' + b'\\"' * (SIZE // 2),
        b"[" * 70 + b'"' + b"\\" * SIZE,
        b"[" * 70 + b'""' * (SIZE // 2),
        b"[" * 70 + b'"["' * (SIZE // 3),
        b"[],[]" * (SIZE // 5),
        (b"[" * 60 + b"]" * 60) * (SIZE // 120),
        b'["' + b"a[" * (SIZE // 2) + b'"]',
        b'["' + b"\\n[" * (SIZE // 3) + b'"]',
    ],
    ids=lambda body: body[:8] + b"..." + body[-8:],
)
def test_no_body_takes_long(body: bytes) -> None:
    began = time.process_time()
    is_too_deep(body)
    assert time.process_time() - began < MOST_SECONDS
