"""holdfast runs expensive multi-step jobs once: every step checkpointed, one effective worker, one
result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.model.version import VERSION

__version__ = VERSION

_EXPORTS = {
    "App": "holdfast.model.app",
    "AsyncClient": "holdfast.client",
    "ArtifactBody": "holdfast.model.projection",
    "BlockingContext": "holdfast.ports.context",
    "Client": "holdfast.client",
    "Conflict": "holdfast.errors",
    "CommittedEvent": "holdfast.model.projection",
    "Context": "holdfast.ports.context",
    "DefinitionError": "holdfast.errors",
    "Document": "holdfast.model.projection",
    "DocumentProjection": "holdfast.model.projection",
    "Failure": "holdfast.ports.context",
    "Forbidden": "holdfast.errors",
    "Holdfast": "holdfast.app",
    "HoldfastError": "holdfast.errors",
    "Items": "holdfast.model.items",
    "Lane": "holdfast.model.lane",
    "LanguageModel": "holdfast.ports.language_model",
    "LanguageModels": "holdfast.ports.language_model",
    "LeaderElection": "holdfast.engine.locks",
    "LeaseLost": "holdfast.errors",
    "LeaseTimes": "holdfast.model.lease",
    "Lock": "holdfast.engine.locks",
    "MessageProjection": "holdfast.model.projection",
    "Outgoing": "holdfast.model.projection",
    "Pause": "holdfast.errors",
    "Permanent": "holdfast.errors",
    "Pipeline": "holdfast.model.pipeline",
    "QuotaExceeded": "holdfast.errors",
    "Receive": "holdfast.model.receive",
    "Question": "holdfast.ports.language_model",
    "Removal": "holdfast.model.projection",
    "Retention": "holdfast.model.options",
    "Retry": "holdfast.model.retry",
    "RunCancelled": "holdfast.errors",
    "RunFailed": "holdfast.errors",
    "RunHandle": "holdfast.engine.handle",
    "RunSnapshot": "holdfast.model.projection",
    "RunState": "holdfast.model.run",
    "Transient": "holdfast.errors",
    "WorkerOptions": "holdfast.model.options",
}

__all__ = [
    "App",
    "ArtifactBody",
    "BlockingContext",
    "CommittedEvent",
    "Conflict",
    "Context",
    "DefinitionError",
    "Document",
    "DocumentProjection",
    "Failure",
    "Forbidden",
    "Holdfast",
    "HoldfastError",
    "Items",
    "Lane",
    "LanguageModel",
    "LanguageModels",
    "LeaderElection",
    "LeaseLost",
    "LeaseTimes",
    "Lock",
    "MessageProjection",
    "Outgoing",
    "Pause",
    "Permanent",
    "Pipeline",
    "Question",
    "QuotaExceeded",
    "Receive",
    "Removal",
    "Retention",
    "Retry",
    "RunCancelled",
    "RunFailed",
    "RunHandle",
    "RunSnapshot",
    "RunState",
    "Transient",
    "WorkerOptions",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must start without the whole engine."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from holdfast.app import Holdfast as Holdfast
    from holdfast.client import AsyncClient as AsyncClient
    from holdfast.client import Client as Client
    from holdfast.engine.handle import RunHandle as RunHandle
    from holdfast.engine.locks import LeaderElection as LeaderElection
    from holdfast.engine.locks import Lock as Lock
    from holdfast.errors import Conflict as Conflict
    from holdfast.errors import DefinitionError as DefinitionError
    from holdfast.errors import Forbidden as Forbidden
    from holdfast.errors import HoldfastError as HoldfastError
    from holdfast.errors import LeaseLost as LeaseLost
    from holdfast.errors import Pause as Pause
    from holdfast.errors import Permanent as Permanent
    from holdfast.errors import QuotaExceeded as QuotaExceeded
    from holdfast.errors import RunCancelled as RunCancelled
    from holdfast.errors import RunFailed as RunFailed
    from holdfast.errors import Transient as Transient
    from holdfast.model.app import App as App
    from holdfast.model.items import Items as Items
    from holdfast.model.lane import Lane as Lane
    from holdfast.model.lease import LeaseTimes as LeaseTimes
    from holdfast.model.options import Retention as Retention
    from holdfast.model.options import WorkerOptions as WorkerOptions
    from holdfast.model.pipeline import Pipeline as Pipeline
    from holdfast.model.projection import ArtifactBody as ArtifactBody
    from holdfast.model.projection import CommittedEvent as CommittedEvent
    from holdfast.model.projection import Document as Document
    from holdfast.model.projection import DocumentProjection as DocumentProjection
    from holdfast.model.projection import MessageProjection as MessageProjection
    from holdfast.model.projection import Outgoing as Outgoing
    from holdfast.model.projection import Removal as Removal
    from holdfast.model.projection import RunSnapshot as RunSnapshot
    from holdfast.model.receive import Receive as Receive
    from holdfast.model.retry import Retry as Retry
    from holdfast.model.run import RunState as RunState
    from holdfast.ports.context import BlockingContext as BlockingContext
    from holdfast.ports.context import Context as Context
    from holdfast.ports.context import Failure as Failure
    from holdfast.ports.language_model import LanguageModel as LanguageModel
    from holdfast.ports.language_model import LanguageModels as LanguageModels
    from holdfast.ports.language_model import Question as Question
