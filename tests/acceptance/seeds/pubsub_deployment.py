"""Worker processes on PostgreSQL and Pub/Sub; other systems use Google's own client library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import postgres_server
from tests.acceptance.seeds.redis_deployment import RedisDeployment
from tests.emulators import PubSubEmulator, fresh_project, shared_pubsub
from tests.integration.pubsub.google import Google

JOBS, RESULTS, DLQ = "aiprod-pipeline-jobs", "aiprod-pipeline-results", "aiprod-pipeline-dlq"


class PubSubDeployment(RedisDeployment):
    """A project and a schema of its own."""

    def __init__(
        self, folder: Path, emulator: PubSubEmulator | None = None, **settings: str
    ) -> None:
        super().__init__(folder, **settings)
        self.url = postgres_server.shared_server().url(postgres_server.fresh_schema())
        self.emulator = emulator or shared_pubsub()
        self.project = fresh_project()
        self.google = Google(self.emulator, self.project)

    @property
    def urls(self) -> dict[str, str]:
        return {"DATABASE_URL": self.url, **self.emulator.environment}

    def start_worker(self, *more: str) -> Any:
        """As the job worker is started."""
        command = ("-m", "holdfast.worker", "--project", self.project, "--threads", "5")
        return self.start(*command, *more)

    def send(self, *orders: tuple[Any, Mapping[str, str]]) -> None:
        for body, attributes in orders:
            user = body.get("user_id", "") if isinstance(body, dict) else ""
            self.google.publish(JOBS, body, attributes, user)

    def results(self, count: int) -> list[Any]:
        return self.google.bodies(f"{RESULTS}-sub", count)

    def dead_letters(self, count: int) -> list[Any]:
        return self.google.bodies(f"{DLQ}-sub", count)
