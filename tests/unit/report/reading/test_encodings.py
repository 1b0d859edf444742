"""Encodings: declared, recognised and guessed; bad bytes cost a character, never a row."""

from __future__ import annotations

import pytest

from holdfast.apps.report.reading.encoding import encoding_of
from holdfast.apps.report.reading.survey import survey

TEXTS = {
    "en": "id,comment\n1,We need parks\n2,And “quiet” streets\n",
    "zh": "id,comment\n1,我覺得司機資料應該受政府管制\n2,應該擴大取締\n",
    "ru": "id,comment\n1,Нужно больше парков\n2,Дороги плохие\n",
    "emoji": "id,comment\n1,Cats 🐈‍⬛ rule\n2,私は梟を愛しています\n",
}


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_unicode_is_read_with_and_without_a_mark_whatever_the_chunks(read, codec, text, chunk):
    comment_set = read(text.encode(codec), chunk=chunk)
    assert comment_set.texts == [line.split(",", 1)[1] for line in text.splitlines()[1:]]
    assert not comment_set.warnings


LEGACY = [
    ("cp1252", "Die Straßen müssen für Fußgänger schöner werden"),
    ("cp1252", "Les écoles sont déjà très chères, l’été à la mairie ça coûte"),
    ("cp1252", "¿Por qué no hay más árboles para los niños?"),
    ("cp1252", "It’s “fine” – really"),
    ("cp1252", "Vi må ha flere tog på Østlandet, både nå og i året som kommer"),
    ("cp1250", "Chciałbym więcej zieleni w mieście, żeby dzieci mogły się bawić"),
    ("cp1251", "Нужно больше парков и деревьев в городе"),
    ("cp1253", "Χρειαζόμαστε περισσότερα πάρκα στην πόλη"),
    ("shift_jis", "公園がもっと必要です。私は梟を愛しています"),
    ("gb18030", "我认为应该有更多公园,地铁太贵了"),
    ("big5", "我覺得司機資料應該受政府管制"),
    ("euc_kr", "공원이 더 필요합니다. 버스 요금이 너무 비쌉니다"),
]


@pytest.mark.parametrize(
    ("codec", "text"), LEGACY, ids=[f"{codec}-{text[:8]}" for codec, text in LEGACY]
)
def test_older_encodings_are_guessed_and_the_guess_is_told(read, codec, text):
    comment_set = read(f'id,comment\n1,"{text}"\n'.encode(codec))
    assert comment_set.texts == [text]
    assert "encoding was guessed" in comment_set.warnings


def test_an_accent_that_comes_late_is_seen(read):
    """A file that begins in ASCII for longer than any sample is not taken for UTF-8."""
    rows = "".join(f"{n},plain words only\n" for n in range(6_000))
    comment_set = read(
        f"id,comment\n{rows}x,Größer wäre schöner\n".encode("cp1252"), max_comments=10**6
    )
    assert comment_set.texts[-1] == "Größer wäre schöner"
    assert comment_set.reader.source.encoding == "cp1252"


def test_a_bad_byte_in_utf8_costs_one_character(read):
    comment_set = read("id,comment\n1,schöne Straßen überall\n".encode() + b"2,bad \xff byte\n")
    assert comment_set.texts == ["schöne Straßen überall", "bad � byte"]
    assert comment_set.reader.source.encoding == "utf-8"
    assert "1 row had characters that could not be read" in comment_set.warnings


def test_bytes_that_no_codepage_has_are_still_read(read):
    assert len(read(b"comment\nfoo \x81\x8d\x8f\x90\x9d bar and some more words\n").rows) == 1


def test_zero_bytes_become_visible(read):
    comment_set = read(b"id,comment\n1,a zero\x00 byte in here\n2,fine\n")
    assert comment_set.texts == ["a zero� byte in here", "fine"]


def test_the_digest_is_that_of_the_bytes():
    assert survey([b"a", b"bc"]).sha256 == survey([b"abc"]).sha256
    assert survey([b"abc"]).bytes == 3


def test_a_character_cut_between_chunks_is_whole():
    data = "comment\nschön\n".encode()
    assert all(encoding_of(survey([data[:at], data[at:]])) == "utf-8" for at in range(len(data)))
