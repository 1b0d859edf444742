"""Google's own emulators of Pub/Sub and Firestore: private, on a free port, with their data in
memory only.

Their jars come with the Cloud SDK (components `pubsub-emulator` and `cloud-firestore-emulator`),
which is looked for where packages put it and beside `gcloud`; `CLOUDSDK_ROOT_DIR` names another
one. They need Java 17 or newer."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from holdfast.testing.servers import NoSuchProgram
from holdfast.testing.servers.redis import free_port

TIMEOUT = 60.0
SDK_FOLDERS = ("/usr/lib/google-cloud-sdk", "/opt/google-cloud-sdk", "~/google-cloud-sdk")


class Emulator:
    """A child process of this one. Its data are lost with `kill`; it starts empty again, on the
    same port."""

    name = ""
    """Of the component of the Cloud SDK."""
    jar = ""
    """Below `platform/` of the Cloud SDK; the last one that matches."""
    main_class = ""
    """Empty: the jar says it."""
    arguments: tuple[str, ...] = ()
    variable = ""
    """What clients read the address from."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"holdfast-{self.name}-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """`host:port`, as the variable expects it."""
        return f"127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What makes a client use it."""
        return {self.variable: self.host}

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def command(self) -> list[str]:
        """What starts it. Raises NoSuchProgram."""
        jar = self.find_jar()
        program = ["-cp", str(jar), self.main_class] if self.main_class else ["-jar", str(jar)]
        # One collector thread and a small heap: it shares the machine with the tests.
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
        where = ["--host=127.0.0.1", f"--port={self.port}"]
        return [java(), *options, *program, *self.arguments, *where]

    def find_jar(self) -> Path:
        folders = sdk_folders()
        for folder in folders:
            if jars := sorted((Path(folder).expanduser() / "platform").glob(self.jar)):
                return jars[-1]
        raise NoSuchProgram(
            f"no {self.name} in {', '.join(folders)}: `gcloud components install {self.name}` or "
            f"`apt-get install google-cloud-cli-{self.name.removeprefix('cloud-')}`, or name the "
            "folder of the Cloud SDK in CLOUDSDK_ROOT_DIR"
        )

    def start(self) -> Emulator:
        command = self.command()
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        self._wait_until_it_answers(self._process)
        return self

    def kill(self) -> None:
        """SIGKILL; its data are lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                return
            time.sleep(0.05)
        raise RuntimeError(
            f"{self.name} did not start: {(self.folder / 'log').read_text()[-2000:]}"
        )

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5.0)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def sdk_folders() -> list[str]:
    """Where the Cloud SDK may be."""
    if folder := os.environ.get("CLOUDSDK_ROOT_DIR"):
        return [folder]
    gcloud = shutil.which("gcloud")
    beside = [str(Path(gcloud).resolve().parents[1])] if gcloud else []
    return list(dict.fromkeys([*beside, *SDK_FOLDERS]))


class PubSubEmulator(Emulator):
    """It ignores filters and retry policies of subscriptions and sends no token with a push;
    ordering, dead-letter topics and ack deadlines are real."""

    name = "pubsub-emulator"
    jar = "pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar"
    variable = "PUBSUB_EMULATOR_HOST"


class FirestoreEmulator(Emulator):
    """Firestore in native mode; no rules, no indexes."""

    name = "cloud-firestore-emulator"
    jar = "cloud-firestore-emulator/cloud-firestore-emulator.jar"
    main_class = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
    arguments = ("start",)
    variable = "FIRESTORE_EMULATOR_HOST"


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin" if home else None)
    if path is None:
        raise NoSuchProgram("no java: install a Java runtime, 17 or newer, or set JAVA_HOME")
    return path
