"""Where settings are shown, their passwords are not: see `holdfast.model.secrecy`."""

from holdfast.model.secrecy import redacted as redacted
