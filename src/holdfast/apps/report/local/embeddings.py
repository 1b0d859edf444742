"""Texts as vectors: near each other means similar in meaning.

Two kinds. `semantic_vectors` is a small static model (WordLlama): the weights and the tokenizer lie
in its wheel and are read from there, because its own loader looks for the tokenizer on the network.
It knows English well and other languages a little. `lexical_vectors` is made from the comments
themselves, by which character sequences they share; it knows no synonyms but works in every script.
`sentence_vectors` weighs the two by language: measured on comments, the model alone is best for
English, character sequences alone for Chinese, and both together for languages like French."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from scipy.sparse import csr_matrix
from tokenizers import Tokenizer

from holdfast.apps.report.local.sentence_encoder import SentenceEncoder
from holdfast.apps.report.local.tokenizing import (
    UNKNOWN,
    UNSPACED,
    WORD,
    fold_case,
    language,
    stop_words,
)
from holdfast.apps.report.main_directions import main_directions
from holdfast.errors import ConfigurationError

Vectors = NDArray[np.float32]
"""One row for each text."""

_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_BATCH = 1024
"""Texts pooled at once: bounds the memory for their tokens."""
_COMMON = 0.02
"""A piece that this share of all texts has counts half."""
_LEXICAL = 48
"""The most dimensions of the lexical vectors. Few texts have fewer: with as many as texts, all
would be unlike."""
_FEATURES = 20_000
_ROUNDS = 5
"""How often the reduction turns to the main directions."""
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_JAPANESE_WORD = re.compile(r"[\u3400-\u9fff々]+|[\u30a0-\u30ff]+")
"""Japanese words of content; what is written in hiragana is mostly grammar."""


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: Tokenizer
    weights: Vectors


_loading = Lock()
_loaded: list[_Model] = []


def _model() -> _Model:
    with _loading:
        if not _loaded:
            wheel = _wheel()
            tokenizer = Tokenizer.from_str((wheel / _TOKENIZER).read_text(encoding="utf-8"))
            tokenizer.no_padding()
            tokenizer.no_truncation()
            weights = load((wheel / _WEIGHTS).read_bytes())["embedding.weight"].astype(np.float32)
            _loaded.append(_Model(tokenizer, weights))
        return _loaded[0]


def _wheel() -> Path:
    """Where the package lies. It is not imported: that would load an HTTP client and set up
    logging."""
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.origin:
        raise ConfigurationError(
            "the local analyst needs the package wordllama: pip install 'holdfast[report]'"
        )
    return Path(spec.origin).parent


def unit_length(vectors: Vectors) -> Vectors:
    """Every row with length 1; a row of zeros stays one."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def subtract_mean(vectors: Vectors) -> Vectors:
    """What sets texts apart from the others around them: the mean taken off, and length 1 again."""
    return unit_length(vectors - vectors.mean(axis=0, keepdims=True)) if len(vectors) else vectors


def semantic_vectors(texts: Sequence[str]) -> Vectors:
    """The static model's vectors: the mean of the pieces of a text, with length 1."""
    return unit_length(_pooled(texts))


def rarity_weighted_vectors(texts: Sequence[str]) -> Vectors:
    """The mean of the pieces of a text, plus the mean in which what many of the texts have counts
    little: what a text is about, in the company of the others."""
    present = _pieces(texts)
    common = np.bincount(present.indices, minlength=len(_model().weights)) / max(1, len(texts))
    rarity = (_COMMON / (_COMMON + common)).astype(np.float32)
    weighted = csr_matrix(
        (present.data * rarity[present.indices], present.indices, present.indptr), present.shape
    )
    return unit_length(unit_length(_means(present)) + unit_length(_means(weighted)))


def token_counts(words: Sequence[str]) -> list[int]:
    """Into how many pieces the tokenizer breaks each word: strings of letters that are no word fall
    into many."""
    encodings = _model().tokenizer.encode_batch(
        [_clean(word) for word in words], add_special_tokens=False
    )
    return [len(encoding.ids) - (encoding.tokens[:1] == ["▁"]) for encoding in encodings]


def _pooled(texts: Sequence[str]) -> Vectors:
    blocks = range(0, len(texts), _BATCH)
    rows = [_means(_pieces(texts[start : start + _BATCH])) for start in blocks]
    return np.vstack(rows) if rows else np.zeros((0, _model().weights.shape[1]), np.float32)


def _pieces(texts: Sequence[str]) -> csr_matrix:
    """How often each piece of the model's vocabulary is in each text."""
    model = _model()
    encodings = model.tokenizer.encode_batch(
        [_clean(text) for text in texts], add_special_tokens=False
    )
    ids = [encoding.ids for encoding in encodings]
    ends = np.concatenate([[0], np.cumsum([len(sentence_ids) for sentence_ids in ids])])
    flat = np.concatenate(ids).astype(np.int32) if ends[-1] else np.zeros(0, np.int32)
    present = csr_matrix(
        (np.ones(len(flat), np.float32), flat, ends), shape=(len(texts), len(model.weights))
    )
    present.sum_duplicates()
    return present


def _means(present: csr_matrix) -> Vectors:
    counts = np.maximum(np.asarray(present.sum(axis=1)), 1e-9)
    return (np.asarray(present @ _model().weights) / counts).astype(np.float32)


def _clean(text: str) -> str:
    """Half a surrogate pair is no text for the tokenizer."""
    return text.encode("utf-8", "replace").decode("utf-8")


def sentence_vectors(texts: Sequence[str], encoder: SentenceEncoder | None = None) -> Vectors:
    """The vectors to find topics with: semantic as far as the model knows the languages, lexical
    for the rest. With an encoder, what it reads counts as much as the words."""
    known = float(np.mean([_known(language(text)) for text in texts])) if texts else 1.0
    parts = []
    if known > 0.1:
        words = rarity_weighted_vectors(texts)
        read = unit_length(np.hstack([words, encoder.encode(texts)])) if encoder else words
        parts.append(known * read)
    if known < 0.9:
        parts.append((1 - known) * lexical_vectors([_content(text) for text in texts]))
    return unit_length(np.hstack(parts).astype(np.float32))


def _known(code: str) -> float:
    """How much the model's vectors say about a language, as measured in English, German, French and
    Chinese."""
    return {"en": 1.0, UNKNOWN: 1.0, "zh": 0.0, "ja": 0.0, "ko": 0.0, "th": 0.0}.get(code, 0.5)


def _content(text: str) -> str:
    stop = stop_words((language(text),))
    return " ".join(word for word in WORD.findall(text) if fold_case(word) not in stop) or text


def lexical_vectors(texts: Sequence[str]) -> Vectors:
    """Vectors by shared character sequences: weighed by rarity, reduced to the main directions,
    with length 1."""
    counted = _counted(texts)
    present = np.bincount(counted.columns, minlength=len(counted.sequences))
    repeated = np.flatnonzero(present > 1).tolist()
    ranked = sorted(repeated, key=lambda at: (-int(present[at]), counted.sequences[at]))
    common = sorted(ranked[:_FEATURES], key=counted.sequences.__getitem__)
    if min(len(common), len(texts)) < 8:
        return np.ones((len(texts), 1), np.float32)
    return _reduced(_weighed(counted, present, common, len(texts)), len(texts), len(common))


@dataclass(frozen=True, slots=True)
class _Counted:
    """How often each sequence is in each text: one entry in `rows`, `columns` and `times` for each
    pair. Counting in arrays takes a fraction of the memory of a dictionary for each text."""

    sequences: list[str]
    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    times: NDArray[np.int32]


def _counted(texts: Sequence[str]) -> _Counted:
    number: dict[str, int] = {}
    rows, columns, times = array("i"), array("i"), array("i")
    for row, text in enumerate(texts):
        counts = Counter(_sequences(text))
        rows.extend([row] * len(counts))
        columns.extend(number.setdefault(sequence, len(number)) for sequence in counts)
        times.extend(counts.values())
    return _Counted(
        list(number),
        np.frombuffer(rows, np.int32),
        np.frombuffer(columns, np.int32),
        np.frombuffer(times, np.int32),
    )


def _sequences(text: str) -> list[str]:
    """Single characters and pairs where there are no spaces; words and their parts of four or five
    elsewhere."""
    sequences: list[str] = []
    is_japanese = bool(_KANA.search(text))
    for word in map(fold_case, WORD.findall(text)):
        if _UNSPACED_RUN.match(word):
            for run in _JAPANESE_WORD.findall(word) if is_japanese else [word]:
                sequences += [run] if _KANA.match(run) else run
                sequences += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            padded = f" {word} "
            sequences += [
                padded,
                *(padded[at : at + n] for n in (4, 5) for at in range(len(padded) - n + 1)),
            ]
    return sequences


def _weighed(
    counted: _Counted, present: NDArray[np.intp], common: Sequence[int], texts: int
) -> csr_matrix:
    """One row for each text, one column for each common sequence, every row with length 1."""
    column = np.full(len(present), -1, np.int32)
    column[common] = np.arange(len(common), dtype=np.int32)
    columns = column[counted.columns]
    inside = columns >= 0
    rows, columns = counted.rows[inside], columns[inside]
    rarity = np.log((1 + texts) / (1 + present[common]))
    weights = (1 + np.log(counted.times[inside])) * rarity[columns]
    lengths = np.sqrt(np.bincount(rows, weights**2, minlength=texts))
    return csr_matrix(
        (weights / np.maximum(lengths, 1e-9)[rows], (rows, columns)), shape=(texts, len(common))
    )


def _reduced(matrix: csr_matrix, rows: int, columns: int) -> Vectors:
    """Rows in their main directions."""
    count = max(2, min(_LEXICAL, rows // 4, columns // 4))
    left, values, _ = main_directions(matrix, count, _ROUNDS)
    return unit_length((left * values).astype(np.float32))
