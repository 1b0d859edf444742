"""Errors of a bucket, translated into errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from holdfast.adapters.buckets.address import Address
from holdfast.errors import Transient

T = TypeVar("T")

MISSING = (FileNotFoundError,)
"""What obstore raises for an object that is not there."""
CONFLICTS = (AlreadyExistsError, PreconditionError)
"""What it raises when the precondition of a write does not hold."""
NO_BUCKET = "NoSuchBucket"
_MESSAGE = re.compile(r"<Message>(.*?)</Message>", re.DOTALL)


@contextmanager
def translated(address: Address, action: str, error_class: type[Transient]) -> Iterator[None]:
    """Translates errors of obstore. A missing object and a conflict pass as they are: callers
    handle them."""
    try:
        yield
    except CONFLICTS:
        raise
    except (BaseError, *MISSING) as error:
        if isinstance(error, MISSING) and NO_BUCKET not in str(error):
            raise
        raise error_class(f"{action} in {address} failed: {_explained(error)}") from error


def refuse_missing_bucket(error: OSError, answer: T) -> T:
    """The answer if it is the object that is missing; raises the error if it is the bucket."""
    if NO_BUCKET in str(error):
        raise error
    return answer


def _explained(error: Exception) -> str:
    message = str(error).partition("\n\nDebug source")[0]
    if NO_BUCKET in message:
        return "there is no such bucket; create it, or correct its name"
    if isinstance(error, PermissionDeniedError):
        return (
            f"this account may not do that ({_reason(message)}): give it the right to create, "
            "read, list and delete objects of the bucket"
        )
    if isinstance(error, UnauthenticatedError):
        return (
            f"the credentials are not accepted ({_reason(message)}): look at `holdfast config "
            "show`, and at what the environment gives"
        )
    return _reason(message)


def _reason(message: str) -> str:
    match = _MESSAGE.search(message)
    return (match.group(1) if match else message)[:500]
