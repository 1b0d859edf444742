"""Every setting in one place: what there is, where it may be given, and which place wins.

settings = load().settings    # command line > environment > .env > secrets > files > defaults
settings.lease.ttl
"""

from holdfast.settings.fields import FIELDS, Field
from holdfast.settings.loading import Loaded, load
from holdfast.settings.places import CONFIG, PROFILE, SECRETS
from holdfast.settings.secrecy import redacted
from holdfast.settings.values import DEFAULT_STORE, Logs, Pool, Settings, Timeouts

__all__ = [
    "CONFIG",
    "DEFAULT_STORE",
    "FIELDS",
    "PROFILE",
    "SECRETS",
    "Field",
    "Loaded",
    "Logs",
    "Pool",
    "Settings",
    "Timeouts",
    "load",
    "redacted",
]
