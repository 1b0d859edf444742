"""The contract of the `Store` port: every sentence of `model/commands.py` and `ports/store.py`, as
a test."""

from __future__ import annotations

from holdfast.testing.contracts.store_topics.batches import BatchTopics
from holdfast.testing.contracts.store_topics.checkpoints import CheckpointTopics
from holdfast.testing.contracts.store_topics.claims import ClaimTopics
from holdfast.testing.contracts.store_topics.dead_letters import DeadLetterTopics
from holdfast.testing.contracts.store_topics.fairness import FairnessTopics
from holdfast.testing.contracts.store_topics.fences import FenceTopics
from holdfast.testing.contracts.store_topics.hostile_values import HostileValueTopics
from holdfast.testing.contracts.store_topics.intake import IntakeTopics
from holdfast.testing.contracts.store_topics.labels import LabelTopics
from holdfast.testing.contracts.store_topics.lanes import LaneTopics
from holdfast.testing.contracts.store_topics.leases import LeaseTopics
from holdfast.testing.contracts.store_topics.locks import LockTopics
from holdfast.testing.contracts.store_topics.notifications import NotificationTopics
from holdfast.testing.contracts.store_topics.operations import OperationTopics
from holdfast.testing.contracts.store_topics.outbox import OutboxTopics
from holdfast.testing.contracts.store_topics.reads import ReadTopics
from holdfast.testing.contracts.store_topics.retention import RetentionTopics
from holdfast.testing.contracts.store_topics.settling import SettlingTopics


class StoreContract(
    IntakeTopics,
    ClaimTopics,
    FairnessTopics,
    LabelTopics,
    LeaseTopics,
    FenceTopics,
    CheckpointTopics,
    SettlingTopics,
    OperationTopics,
    RetentionTopics,
    LaneTopics,
    LockTopics,
    DeadLetterTopics,
    OutboxTopics,
    BatchTopics,
    HostileValueTopics,
    ReadTopics,
    NotificationTopics,
):
    """Subclass it and define `make_store`. No test sleeps: the clock is moved."""
