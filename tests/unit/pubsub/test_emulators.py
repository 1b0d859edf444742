"""Where Google's emulators are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.servers import NoSuchProgram
from holdfast.testing.servers.emulators import PubSubEmulator


def an_sdk(folder: Path) -> Path:
    """A Cloud SDK that has the emulator in two versions."""
    jars = folder / "platform/pubsub-emulator/lib"
    jars.mkdir(parents=True)
    for version in ("0.8.19", "0.8.20"):
        (jars / f"cloud-pubsub-emulator-{version}-all.jar").touch()
    (folder / "bin").mkdir()
    program = folder / "bin/gcloud"
    program.touch(mode=0o755)
    return program


def test_the_sdk_beside_gcloud_and_the_one_that_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("CLOUDSDK_ROOT_DIR", raising=False)
    program = an_sdk(tmp_path / "sdk")
    (tmp_path / "path").mkdir()
    (tmp_path / "path/gcloud").symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    newest = tmp_path / "sdk/platform/pubsub-emulator/lib/cloud-pubsub-emulator-0.8.20-all.jar"
    assert PubSubEmulator(port=1).find_jar() == newest
    monkeypatch.setenv("CLOUDSDK_ROOT_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(NoSuchProgram, match="gcloud components install pubsub-emulator"):
        PubSubEmulator(port=1).find_jar()
