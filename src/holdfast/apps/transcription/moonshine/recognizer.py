"""Moonshine's encoder and decoder: sound in, tokens out, the likeliest at each place."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from holdfast.apps.transcription.moonshine.vocabulary import BEGIN, END, Vocabulary

RATE = 16_000
TOKENS_PER_SECOND = 6.5
"""More than people speak: what comes beyond is the model repeating itself."""
SHORTEST = RATE // 4
"""Samples; less is filled up with silence."""


class Recognizer:
    """Loaded once; calls may overlap, each takes one thread."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # 180 MB less, and as fast: every segment has its length
        self._encoder = _session(folder / "encoder_model.ort", options)
        self._decoder = _session(folder / "decoder_model_merged.ort", options)
        self._vocabulary = Vocabulary(folder / "tokenizer.bin")
        self._past = [
            tensor.name for tensor in self._decoder.get_inputs() if tensor.name.startswith("past")
        ]
        _, self._heads, _, self._width = self._decoder.get_inputs()[2].shape
        self._present = [result.name for result in self._decoder.get_outputs()][1:]

    def text(self, samples: bytes) -> str:
        sound = np.frombuffer(samples, np.int16).astype(np.float32) / 32_768
        if len(sound) < SHORTEST:
            sound = np.pad(sound, (0, SHORTEST - len(sound)))
        hidden = self._encoder.run(None, {"input_values": sound[None]})[0]
        most = int(len(sound) / RATE * TOKENS_PER_SECOND) + 1
        return self._vocabulary.text(self._decode(hidden, most))

    def _decode(self, hidden: Any, most: int) -> list[int]:
        empty = np.zeros((1, self._heads, 0, self._width), np.float32)
        past: dict[str, Any] = dict.fromkeys(self._past, empty)
        tokens = [BEGIN]
        for step in range(most):
            inputs = {
                "input_ids": np.array([tokens[-1:]], np.int64),
                "encoder_hidden_states": hidden,
                "use_cache_branch": np.array([step > 0]),
                **past,
            }
            logits, *present = self._decoder.run(None, inputs)
            token = int(logits[0, -1].argmax())
            if token == END:
                break
            tokens.append(token)
            for name, value in zip(self._present, present, strict=True):
                # what is known of the sound is worked out by the first step, and only by it
                if step == 0 or ".decoder." in name:
                    past[name.replace("present", "past_key_values")] = value
        return tokens[1:]


def _session(path: Path, options: Any) -> Any:
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


_loaded: dict[Path, Recognizer] = {}
_guard = threading.Lock()


def recognizer(folder: Path) -> Recognizer:
    """One for the whole process: it takes a second, 230 MB, and 320 MB for each call under way."""
    with _guard:
        if folder not in _loaded:
            _loaded[folder] = Recognizer(folder)
        return _loaded[folder]
