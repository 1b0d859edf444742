"""A job of the compute queue, and what the environment sets for all of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

NAME = r"^[a-z][a-z0-9-]{0,40}$"
SECRETS = ("token", "accessToken", "refreshToken", "password", "authorization")


class ComputeJob(BaseModel):
    """What is put into the queue: `{"instanceId": "inst-1", "microserviceId": "orders", …}`."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True, frozen=True
    )

    instance_id: str = Field(min_length=1, max_length=100)
    """The job is the instance: putting it into the queue again changes nothing."""
    microservice_id: str = Field(pattern=NAME)
    generate_api_flag: bool = True
    generate_frontend_flag: bool = True
    generate_dev_ops_flag: bool = Field(True, alias="generateDevOpsFlag")
    git_operations_flag: bool = True
    dns_update_flag: bool = True
    menus: tuple[str, ...] = ()
    """The pages of the service."""
    external_fks: tuple[str, ...] = ()
    user_info: dict[str, Any] = {}
    """Who asked. Whatever needed a token was resolved before."""
    migration_options: dict[str, Any] = {}
    trace_id: str = ""

    @field_validator("user_info")
    @classmethod
    def without_secrets(cls, value: dict[str, Any]) -> dict[str, Any]:
        return {name: part for name, part in value.items() if name not in SECRETS}

    @property
    def labels(self) -> dict[str, str]:
        """What its runs are found by, and what their log lines carry."""
        labels = {"instanceId": self.instance_id, "microserviceId": self.microservice_id}
        return labels | ({"traceId": self.trace_id} if self.trace_id else {})


@dataclass(frozen=True)
class QueueSettings:
    """Durations are seconds."""

    max_attempts: int = 10
    retry_delay: float = 5.0
    timeout: float = 900.0
    workspace: Path = Path("compute-workspace")

    @classmethod
    def from_environment(cls) -> QueueSettings:
        def number(name: str, default: float) -> float:
            return float(os.environ.get(name) or default)

        return cls(
            int(number("COMPUTE_GEN_MAX_ATTEMPTS", cls.max_attempts)),
            number("COMPUTE_GEN_RETRY_DELAY_MS", cls.retry_delay * 1000) / 1000,
            number("COMPUTE_GEN_TIMEOUT_MS", cls.timeout * 1000) / 1000,
            Path(os.environ.get("COMPUTE_WORKSPACE") or cls.workspace),
        )
