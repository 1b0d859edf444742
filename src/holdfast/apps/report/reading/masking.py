"""Personal data in a text, masked length for length: every offset into the text stays what it was.

E-mail addresses, phone numbers, card numbers (with a valid check digit), US social security
numbers, IBANs (with valid check digits) and IP addresses. Figures that people argue with, such as
years, dates, prices and populations, stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

_SUSPECT = re.compile(r"[@\d]|::")
# of scripts with spaces between words: elsewhere an address has no visible ends
_LETTERS = "A-Za-z0-9\u00c0-\u052f"
_EMAIL = re.compile(
    rf"(?<![{_LETTERS}_.+%-])[{_LETTERS}_.+%-]{{1,64}}@(?:[\w-]{{1,63}}\.){{1,8}}[A-Za-z\u00c0-\u052f]{{2,24}}"
)
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)
_CARD = re.compile(
    r"(?<![\d.,-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ "
    r"-])\d{6}\2\d{4,5})(?![\d-]|[.,]\d)"
)
_SOCIAL = re.compile(r"(?<![\d-])(?!000|666|9)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\d-])")
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9_.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})(?![A-Za-z0-9_:]|\.\d)"
)
_PHONE = re.compile(
    r"(?<![A-Za-z0-9_$€£¥])(?<!\d[.,])(?:(?:\+ ?\d{1,3}|00 ?\d{1,3}|1)[ -]?)?(?:\(\+?\d{2,5}\)[ "
    r"-]?)?"
    r"\d{1,12}(?:(?: ?\(0\) ?|[ ./\u2010-\u2013-]{1,2})\d{1,12}){0,7}"
    r"(?![A-Za-z0-9_%€£¥]|[.,:]\d)"
)
_DIGITS = re.compile(r"\d+")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})(?!\d)"
)
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
_AMOUNT = re.compile(
    r"\s?(?:[$€£¥%]|usd|eur|gbp|chf|dollars?|euros?|pounds?|francs?|yen|million|billion|people)\b",
    re.IGNORECASE,
)

FILL = "█"


def masked(text: str) -> str:
    """The text with personal data replaced by a label, as long as before."""
    if not _SUSPECT.search(text):
        return text
    for pattern, label, holds in _RULES:
        text = pattern.sub(partial(_replacement, label, holds), text)
    return text


def _replacement(label: str, holds: Callable[[re.Match[str]], bool], match: re.Match[str]) -> str:
    text = match[0]
    if not holds(match):
        return text
    tag = f"[{label}]"
    return tag.ljust(len(text), FILL) if len(tag) <= len(text) else FILL * len(text)


def _always(match: re.Match[str]) -> bool:
    return True


def _has_iban_checksum(match: re.Match[str]) -> bool:
    account = match[0].replace(" ", "")
    moved = account[4:] + account[:4]
    return (
        15 <= len(account) <= 34
        and int("".join(str(int(character, 36)) for character in moved)) % 97 == 1
    )


def _has_card_checksum(match: re.Match[str]) -> bool:
    digits = [int(digit) for digit in match[0] if digit.isdigit()][::-1]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[1::2]]
    return any(digits) and (sum(digits[0::2]) + sum(doubled)) % 10 == 0


def _is_address(match: re.Match[str]) -> bool:
    try:
        return bool(ip_address(match[0])) and len(match[0]) >= 6
    except ValueError:
        return False


def _is_phone_number(match: re.Match[str]) -> bool:
    number = match[0].strip()
    groups = _DIGITS.findall(number)
    length = sum(map(len, groups))
    if not 8 <= length <= 15:
        return False
    if number.startswith(("+", "00")):
        return True
    return _is_written_like_a_phone_number(number, groups, length) and not _AMOUNT.match(
        match.string, match.end()
    )


def _is_written_like_a_phone_number(number: str, groups: list[str], length: int) -> bool:
    from_zero = number.startswith(("0", "(0"))
    if len(groups) == 1:
        return 10 <= length <= 12 or (from_zero and length >= 9)
    if _DATE.match(number) or all(_YEAR.fullmatch(group) for group in groups):
        return False
    if _is_decimal(number, groups) or _is_book(groups):
        return False
    if not from_zero and (_is_range(number, groups) or max(map(len, groups)) < 3):
        return False
    return not _is_grouped_in_thousands(number, groups)


def _is_book(groups: list[str]) -> bool:
    return groups[0] in ("978", "979") and sum(map(len, groups)) == 13


def _is_decimal(number: str, groups: list[str]) -> bool:
    return len(groups) == 2 and "." in number


def _is_range(number: str, groups: list[str]) -> bool:
    return len(groups) == 2 and len(groups[0]) > 3 and "(" not in number and " " not in number


def _is_grouped_in_thousands(number: str, groups: list[str]) -> bool:
    """1.250.000 or 1 250 000. With spaces it could be a phone number of three threes, and is one
    unless it is round."""
    grouped = (
        not number.startswith(("0", "("))
        and all(len(group) == 3 for group in groups[1:])
        and len(groups[0]) <= 3
    )
    return grouped and ("." in number or groups[-1] == "000" or len(groups[0]) < 3)


_RULES = (
    (_EMAIL, "email", _always),
    (_IBAN, "iban", _has_iban_checksum),
    (_CARD, "card", _has_card_checksum),
    (_SOCIAL, "ssn", _always),
    (_ADDRESS, "ip", _is_address),
    (_PHONE, "phone", _is_phone_number),
)
