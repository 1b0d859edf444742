"""Which column is what: roles found by the names that files use, everything else a facet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.apps.report.reading.notes import Note, Notes
from holdfast.apps.report.reading.table import UnreadableRow
from holdfast.errors import InvalidInput

MOST_FACETS = 30
LONGEST_FACET = 200

# The first name in the list wins, whatever the order in the file. Each list begins with the names
# of Talk to the City.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "comment": (
        *("comment", "comment-body", "response", "answer", "text"),
        *(
            "body",
            "message",
            "feedback",
            "opinion",
            "statement",
            "comments",
            "responses",
            "answers",
            "review",
        ),
        *(
            "comment-text",
            "free-text",
            "verbatim",
            "content",
            "tweet",
            "submission",
            "suggestion",
            "proposal",
        ),
        *(
            "kommentar",
            "kommentare",
            "antwort",
            "beitrag",
            "meinung",
            "commentaire",
            "réponse",
            "avis",
        ),
        *(
            "comentario",
            "comentarios",
            "respuesta",
            "opinión",
            "comentário",
            "resposta",
            "commento",
            "risposta",
        ),
        *(
            "reactie",
            "opmerking",
            "antwoord",
            "svar",
            "komentarz",
            "комментарий",
            "ответ",
            "отзыв",
            "коментар",
        ),
        *(
            "意見",
            "意见",
            "評論",
            "评论",
            "留言",
            "內容",
            "内容",
            "回答",
            "コメント",
            "ご意見",
            "의견",
            "댓글",
        ),
        *("تعليق", "رأي", "תגובה", "σχόλιο", "yorum"),
    ),
    "id": ("id", "comment-id", "row-id", "i", "response-id", "answer-id", "uuid"),
    "speaker": (
        *("interview", "name", "extraquestion1", "speaker-name", "author", "speaker-id"),
        *(
            "author-id",
            "speaker",
            "participant",
            "participant-id",
            "user",
            "user-id",
            "username",
            "user-name",
        ),
        *(
            "respondent",
            "respondent-id",
            "author-name",
            "full-name",
            "interviewee",
            "person",
            "voter-id",
        ),
        *(
            "autor",
            "auteur",
            "nom",
            "nombre",
            "teilnehmer",
            "nutzer",
            "имя",
            "автор",
            "作者",
            "姓名",
            "名前",
            "이름",
        ),
    ),
    "video": ("video", "video-link", "video-url"),
    "timestamp": ("timestamp",),
    "agrees": ("agrees", "agree-count", "n-agree", "upvotes"),
    "disagrees": ("disagrees", "disagree-count", "n-disagree", "downvotes"),
    "passes": ("passes", "pass-count", "n-pass"),
    "moderated": ("moderated",),
}

_BETWEEN_WORDS = re.compile(r"[\s_\-.:*]+")
_YOUR = re.compile(r"^(?:your|ihre?|votre|tus?|su|seu|sua|uw|jouw)[\s_\-]+(?=\S)")
"""How forms address people: "Your comment"."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Where everything stands in a row. A role that no column has is None."""

    names: dict[str, str]
    """Role → the file's own name."""
    facets: tuple[tuple[int, str], ...]
    surplus: tuple[str, ...]
    """Columns that are too many to be facets."""
    width: int
    separator: str
    comment: int
    id: int | None
    speaker: int | None
    video: int | None
    timestamp: int | None
    agrees: int | None
    disagrees: int | None
    passes: int | None
    moderated: int | None
    questions: tuple[tuple[int, str], ...] = ()
    """Where the answers to each question stand; empty where there is one column of comments."""
    question: int = 0
    """Which of the questions `comment` answers, from 1; 0 where there are none."""

    def by_question(self) -> tuple[Columns, ...]:
        """The same columns for each question; themselves where there are none."""
        return tuple(
            replace(self, comment=index, question=number)
            for number, (index, _) in enumerate(self.questions, 1)
        ) or (self,)

    @property
    def asked(self) -> str:
        return self.questions[self.question - 1][1] if self.question else ""

    def fit(self, cells: list[str], notes: Notes) -> list[str] | UnreadableRow:
        """A row as wide as the header. Where a comment in the last column was cut at its commas,
        put it together."""
        if len(cells) < self.width:
            return self._lengthened(cells, notes)
        while len(cells) > self.width and not cells[-1].strip():
            del cells[-1]
        return self._shortened(cells, notes) if len(cells) > self.width else cells

    def _lengthened(self, cells: list[str], notes: Notes) -> list[str] | UnreadableRow:
        if len(cells) <= self.comment:
            return UnreadableRow(
                f"the row has {len(cells)} of {self.width} cells and ends before the comment",
                " ".join(cells),
            )
        notes[Note.SHORT] += 1
        return cells + [""] * (self.width - len(cells))

    def _shortened(self, cells: list[str], notes: Notes) -> list[str]:
        if self.separator and self.comment == self.width - 1:
            notes[Note.SURPLUS] += 1
            return [*cells[: self.comment], self.separator.join(cells[self.comment :])]
        notes[Note.IGNORED] += 1
        return cells[: self.width]


def find_columns(
    names: Sequence[str],
    overrides: Mapping[str, str],
    filename: str,
    separator: str = "",
    questions: Sequence[str] = (),
) -> Columns:
    """What each column is for. Raises InvalidInput with the columns there are when none holds
    comments. Without one, columns that are called like a question are `questions`."""
    roles = _roles(names, overrides, filename)
    answers = _questions(names, roles, filename, questions)
    if answers:
        roles["comment"] = answers[0][0]
    if "comment" not in roles:
        raise InvalidInput(
            f"{filename} has no column of comments that could be recognised. Columns found: "
            f"{listed(names)}. "
            "Say which one it is: --column comment=NAME."
        )
    used = {*roles.values(), *(index for index, _ in answers)}
    others = [(index, name) for index, name in enumerate(names) if index not in used]
    return Columns(
        names={role: names[index] for role, index in roles.items()}
        | ({"comment": " | ".join(name for _, name in answers)} if answers else {}),
        facets=tuple(others[:MOST_FACETS]),
        surplus=tuple(name for _, name in others[MOST_FACETS:]),
        width=len(names),
        separator=separator,
        comment=roles["comment"],
        **{role: roles.get(role) for role in ALIASES if role != "comment"},
        questions=tuple(answers) if len(answers) > 1 else (),
        question=0,
    )


def _questions(
    names: Sequence[str], roles: Mapping[str, int], filename: str, columns_wanted: Sequence[str]
) -> list[tuple[int, str]]:
    """The columns that each answer a question: those that were said, else those called so."""
    if columns_wanted:
        indexes = [_overridden("comment", name, names, filename) for name in columns_wanted]
        return [(index, names[index]) for index in dict.fromkeys(indexes)]
    if "comment" in roles:
        return []
    return [(index, name) for index, name in enumerate(names) if is_question(name)]


def is_question(name: str) -> bool:
    return name.rstrip(" *\"'”’").endswith(("?", "？", "؟"))


def has_comments(
    names: Sequence[str], overrides: Mapping[str, str], questions: Sequence[str] = ()
) -> bool:
    """Whether these could be the names of columns of a table of comments."""
    if questions or any(map(is_question, names)):
        return True
    aliases = [overrides["comment"]] if "comment" in overrides else ALIASES["comment"]
    return not {_key(name) for name in names}.isdisjoint(map(_key, aliases))


def _roles(names: Sequence[str], overrides: Mapping[str, str], filename: str) -> dict[str, int]:
    overridden = {
        role: _overridden(role, name, names, filename) for role, name in overrides.items()
    }
    positions: dict[str, int] = {}
    for index, name in enumerate(names):
        if index not in overridden.values():
            positions.setdefault(_key(name), index)
    recognised = {
        role: _first(aliases, positions)
        for role, aliases in ALIASES.items()
        if role not in overridden
    }
    return {
        role: index
        for role in ALIASES
        if (index := overridden.get(role, recognised.get(role))) is not None
    }


def _overridden(role: str, column: str, names: Sequence[str], filename: str) -> int:
    if role not in ALIASES:
        raise InvalidInput(
            f"--column {role}={column}: there is no role {role!r}. Roles: {', '.join(ALIASES)}."
        )
    if column in names:
        return names.index(column)
    keys = [_key(name) for name in names]
    if _key(column) in keys:
        return keys.index(_key(column))
    raise InvalidInput(
        f"{filename} has no column {column!r} (for {role}). Columns found: {listed(names)}."
    )


def _first(aliases: Sequence[str], positions: Mapping[str, int]) -> int | None:
    return next((positions[key] for alias in aliases if (key := _key(alias)) in positions), None)


def _key(name: str) -> str:
    """The same for `Speaker Name`, `speaker-name`, `SPEAKER_NAME` and `Your speaker name`."""
    folded = name.strip("\ufeff\u200b\"'").casefold()
    return _BETWEEN_WORDS.sub("", _YOUR.sub("", folded))


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in names[:30])
    return shown if len(names) <= 30 else f"{shown} and {len(names) - 30:,} more"
