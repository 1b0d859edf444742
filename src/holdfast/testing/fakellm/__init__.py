"""A fake language model: a local server that speaks the vendors' protocols, with faults on
demand."""

from holdfast.testing.fakellm.brains import Fixed, Minimal
from holdfast.testing.fakellm.faults import (
    KINDS,
    Fault,
    Plan,
    always,
    by_chance,
    first_tries,
    in_turn,
    never,
    when,
)
from holdfast.testing.fakellm.protocol import Brain, Call
from holdfast.testing.fakellm.server import DirectTransport, FakeLLM
from holdfast.testing.fakellm.service import VENDORS

__all__ = [
    "KINDS",
    "VENDORS",
    "Brain",
    "Call",
    "DirectTransport",
    "FakeLLM",
    "Fault",
    "Fixed",
    "Minimal",
    "Plan",
    "always",
    "by_chance",
    "first_tries",
    "in_turn",
    "never",
    "when",
]
