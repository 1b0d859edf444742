"""Doors for those who come from other systems: their names and shapes, on holdfast's mechanisms.

from holdfast.apps.compat import get_pipeline_lock_manager
"""

from holdfast.apps.compat.instances import instance_of
from holdfast.apps.compat.pipeline_lock import (
    PipelineLock,
    PipelineLockManager,
    get_pipeline_lock_manager,
)

__all__ = ["PipelineLock", "PipelineLockManager", "get_pipeline_lock_manager", "instance_of"]
