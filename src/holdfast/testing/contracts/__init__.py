"""One suite for each port, to be run over every adapter: subclass it and say how to make yours.

class TestMyStore(StoreContract):
    def make_store(self, clock):
        return MyStore(clock)
"""

import pytest

# The suites live outside the user's tests, where pytest would show failed assertions without their
# values.
pytest.register_assert_rewrite(
    "holdfast.testing.contracts.blobs",
    "holdfast.testing.contracts.bus",
    "holdfast.testing.contracts.documents",
    "holdfast.testing.contracts.mover_topics",
    "holdfast.testing.contracts.store_topics",
)
