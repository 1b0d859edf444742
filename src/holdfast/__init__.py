"""holdfast runs expensive multi-step jobs once: every step checkpointed, one effective worker, one
result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "App": "holdfast.model.app",
    "BlockingContext": "holdfast.ports.context",
    "Conflict": "holdfast.errors",
    "Context": "holdfast.ports.context",
    "DefinitionError": "holdfast.errors",
    "Failure": "holdfast.ports.context",
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
    "Pause": "holdfast.errors",
    "Permanent": "holdfast.errors",
    "Pipeline": "holdfast.model.pipeline",
    "Question": "holdfast.ports.language_model",
    "Retention": "holdfast.model.options",
    "Retry": "holdfast.model.retry",
    "RunCancelled": "holdfast.errors",
    "RunFailed": "holdfast.errors",
    "RunHandle": "holdfast.engine.handle",
    "RunState": "holdfast.model.run",
    "Transient": "holdfast.errors",
    "WorkerOptions": "holdfast.model.options",
}

__all__ = [
    "App",
    "BlockingContext",
    "Conflict",
    "Context",
    "DefinitionError",
    "Failure",
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
    "Pause",
    "Permanent",
    "Pipeline",
    "Question",
    "Retention",
    "Retry",
    "RunCancelled",
    "RunFailed",
    "RunHandle",
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
    from holdfast.engine.handle import RunHandle as RunHandle
    from holdfast.engine.locks import LeaderElection as LeaderElection
    from holdfast.engine.locks import Lock as Lock
    from holdfast.errors import Conflict as Conflict
    from holdfast.errors import DefinitionError as DefinitionError
    from holdfast.errors import HoldfastError as HoldfastError
    from holdfast.errors import LeaseLost as LeaseLost
    from holdfast.errors import Pause as Pause
    from holdfast.errors import Permanent as Permanent
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
    from holdfast.model.retry import Retry as Retry
    from holdfast.model.run import RunState as RunState
    from holdfast.ports.context import BlockingContext as BlockingContext
    from holdfast.ports.context import Context as Context
    from holdfast.ports.context import Failure as Failure
    from holdfast.ports.language_model import LanguageModel as LanguageModel
    from holdfast.ports.language_model import LanguageModels as LanguageModels
    from holdfast.ports.language_model import Question as Question
