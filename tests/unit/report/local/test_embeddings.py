"""Vectors come from the wheel, without a network, and mean something."""

import socket
import subprocess
import sys

import numpy as np
import pytest

from holdfast.apps.report.local import embeddings
from holdfast.apps.report.local.embeddings import (
    lexical_vectors,
    rarity_weighted_vectors,
    semantic_vectors,
    sentence_vectors,
)


def test_similar_sentences_are_near_and_others_are_not():
    bus, train, tax = semantic_vectors(
        ["We need more buses", "More buses are needed here", "Taxes on income are too high"]
    )
    assert bus @ train > 0.7 > bus @ tax


def test_every_vector_has_length_one_and_an_empty_text_has_none():
    vectors = semantic_vectors(["one", "", "\x00", "\ud800", "😀" * 100, "word " * 5000])
    assert np.allclose(np.linalg.norm(vectors, axis=1)[[0, 4, 5]], 1, atol=1e-5)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


def test_no_texts_have_no_vectors():
    assert semantic_vectors([]).shape == (0, 256)
    assert sentence_vectors([]).shape == (0, 256)


def test_what_all_texts_have_counts_little_beside_what_few_have():
    """Half of what these say is the same in all; what sets them apart decides."""
    same = "I think that the government of our country really should do more about the {}"
    texts = [same.format(word) for word in ("bus", "train", "prisons", "jails")]
    plain, weighted = semantic_vectors(texts), rarity_weighted_vectors(texts)
    assert np.allclose(np.linalg.norm(weighted, axis=1), 1, atol=1e-5)
    assert plain[0] @ plain[2] - weighted[0] @ weighted[2] > 0.02
    assert weighted[0] @ weighted[1] > weighted[0] @ weighted[2]


def test_lexical_vectors_tell_apart_what_shares_no_characters():
    texts = [
        "計程車司機服務很好",
        "計程車司機服務不好",
        "計程車司機很多",
        "保險與安全",
        "乘客保險與安全",
        "保險與安全問題",
    ] * 2
    vectors = lexical_vectors(texts)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[3]


def test_japanese_that_shares_only_grammar_is_not_alike():
    """Requests end alike; what they are about is written in kanji and katakana."""
    texts = [
        "図書館を増やしてほしいです",
        "保育園を増やしてほしいです",
        "図書館は静かでした",
        "バスを増やしてほしいです",
        "バスが遅れました",
        "保育園に入れません",
    ] * 2
    vectors = lexical_vectors(texts)
    assert vectors[0] @ vectors[2] > 0.5 > vectors[0] @ vectors[1]


def test_the_same_texts_have_the_same_vectors():
    texts = [f"Satz Nummer {at} über Bäume und Straßen" for at in range(40)]
    assert np.array_equal(sentence_vectors(texts), sentence_vectors(texts))


def test_nothing_is_asked_of_the_network(monkeypatch: pytest.MonkeyPatch):
    """With every socket refused, the model is loaded afresh and works."""

    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("the local analyst opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(embeddings, "_loaded", [])
    assert semantic_vectors(["We need more buses"]).shape == (1, 256)


def test_no_http_client_is_even_imported():
    code = (
        "import sys; from holdfast.apps.report.local.embeddings import semantic_vectors; "
        "semantic_vectors(['hello']); "
        "print([m for m in ('wordllama', 'requests', 'httpx', 'urllib3') if m in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"
