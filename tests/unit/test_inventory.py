"""What two stores are compared by."""

from holdfast.ports.mover import ExpiringRecord
from holdfast.ports.records import Record
from holdfast.services.inventory import Inventory


def inventory(*records):
    result = Inventory()
    for record in records:
        result.add(record)
    return result


LASTING = ExpiringRecord(Record("a", "1", "v1", 1000.0))
EXPIRING = ExpiringRecord(Record("workers/w", "{}", "v2", 1000.0), remaining=0.5)


def test_a_record_that_is_missing_is_a_difference():
    assert inventory(LASTING).differences(inventory()) == ["records (1 and 0)"]


def test_a_record_that_expires_while_two_stores_are_compared_is_none():
    assert inventory(LASTING, EXPIRING).differences(inventory(LASTING)) == []
