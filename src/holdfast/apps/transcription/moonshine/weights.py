"""Where the weights are: inside the package `moonshine-cpp`, which is never imported (it loads a
library of its own that some processors can't run)."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from holdfast.errors import ConfigurationError

PACKAGE = "moonshine-cpp"
FOLDER = "models/base-en"
FILES = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")


@cache
def weights_folder() -> Path:
    """Raises ConfigurationError that says what to install."""
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        raise ConfigurationError(
            f"the transcriber moonshine needs {PACKAGE}: pip install 'holdfast[transcription]'"
        ) from None
    for file in files:
        if file.as_posix().endswith(f"{FOLDER}/{FILES[0]}"):
            folder = Path(str(file.locate())).parent
            if all((folder / name).is_file() for name in FILES):
                return folder
    raise ConfigurationError(f"{PACKAGE} has no {FOLDER} in it: install version 0.1.4")
