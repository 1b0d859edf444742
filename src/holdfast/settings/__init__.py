"""Every setting in one place: what there is, where it may be given, and which place wins.

settings = load().settings    # command line > environment > .env > secrets > files > defaults
settings.lease.ttl
"""

from holdfast.settings.fields import FIELDS, Alias, Field
from holdfast.settings.loading import Loaded, Useless, load
from holdfast.settings.places import CONFIG, PROFILE, SECRETS
from holdfast.settings.secrecy import redacted
from holdfast.settings.values import DEFAULT_STORE, Events, Locks, Logs, Pool, Settings, Timeouts
from holdfast.settings.without_effect import WITHOUT_EFFECT, WithoutEffect

__all__ = [
    "CONFIG",
    "DEFAULT_STORE",
    "FIELDS",
    "PROFILE",
    "SECRETS",
    "WITHOUT_EFFECT",
    "Alias",
    "Events",
    "Field",
    "Loaded",
    "Locks",
    "Logs",
    "Pool",
    "Settings",
    "Timeouts",
    "Useless",
    "WithoutEffect",
    "load",
    "redacted",
]
