"""`python -m benchmarks.report_quality DATA`: how well a report says what people think.

DATA is a folder with files of comments (`*.csv`) and, in `votes/`, Polis vote matrices. Each file,
and three mixes made of all of them, goes through `holdfast report build` in a process of its own,
offline. Measured on what came out:

- topics against the source file on the mixes (NMI, ARI), beside TF-IDF with k-means; several,
  because one more or less topic moves either figure by some hundredths
- names that are URLs, handles, numbers, or cut out of a longer word
- opinion groups against Polis' own `group-id` (ARI), over people that both put into a group
- how many of the ten widest gaps between Polis' groups, on comments that moderators let through,
  are among the cruxes
- how much comments with the same keyword scatter over topics
- seconds and peak memory

`--python PATH` measures another installation, `--model local:minilm` the sentence encoder,
`--save` and `--before` compare two.

`--encoders` compares without reports: topics only, of the mixes and of the keywords' file, with the
words alone, the encoder alone and both. A text is encoded once, for all of them; after `--minutes`
only the words are measured, which the output says."""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.comments import CHILD
from holdfast.apps.report.local import embeddings
from holdfast.apps.report.local.sentence_encoder import SentenceEncoder, sentence_encoder
from holdfast.apps.report.local.topics import find_topics, split_comments
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment
from holdfast.apps.report.model.taxonomy import Clustering

Report = dict[str, Any]

MIXED = (150, 100, 75)
"""Comments of one file in each of the mixes, at most."""
WIDEST = 10
ENCODED = 64
"""Texts that are encoded between two looks at the clock."""
LEAST_VOTES = 10
"""Of each group, for a gap to count."""
KEYWORDS = (
    "refugee", "climate", "gun", "health", "abortion", "school", "tax", "immigra", "vote", "racis",
)  # fmt: skip
KEYWORD_FILE = "polis_marchon_2162"
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
SPACED = re.compile(r"[^\W\d_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
KATAKANA = re.compile(r"[\u30a1-\u30ff]+")
OWN_WORDS = {
    "chinese", "japanese", "korean", "general", "remarks", "and", "et", "und", "y", "en",
    "général", "allgemein", "全般",
}  # fmt: skip
"""Words of names that are ours."""
BAD_NAMES = {
    "URL": re.compile(r"https?:|www\.|\.(?:com|org|net|gov|de|fr)\b|://", re.IGNORECASE),
    "handle": re.compile(r"(?<!\w)@\w|#\w"),
    "number": re.compile(r"^[\W\d]+$"),
}


# --- reports --------------------------------------------------------------------------------------


def build(
    python: str, file: Path, votes: Path | None, folder: Path, model: str
) -> tuple[Report, float, float]:
    """The report on a file, and the seconds and megabytes it took."""
    command = [python, "-m", "holdfast", "report", "build", str(file), "-o", str(folder), "--json"]
    command += ["--model", model]
    command += ["--store", f"sqlite:///{folder}.db", *(["--votes", str(votes)] if votes else [])]
    ended = subprocess.run(
        [python, "-c", CHILD, *command], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{file.name}: {ended.stderr}")
    seconds, kilobytes = ended.stdout.split()
    report = json.loads((folder / "report.json").read_bytes())
    return report, round(float(seconds), 1), round(int(kilobytes) / 1024)


def make_mix(files: Sequence[Path], most: int, target: Path) -> None:
    """Evenly spread comments of every file under one header; the id begins with the file's name."""
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "name", "comment"])
        for file in files:
            with file.open(encoding="utf-8-sig", newline="") as source:
                rows = list(csv.DictReader(source))
            column = next(name for name in ("comment", "comment-body") if name in rows[0])
            texts = [row[column] for row in rows if len((row[column] or "").strip()) > 20]
            for at in np.unique(np.linspace(0, len(texts) - 1, min(most, len(texts))).astype(int)):
                writer.writerow([f"{file.stem}|{at}", f"{file.stem} {at}", texts[at]])


def make_mixes(data: Path, folder: Path) -> list[Path]:
    files = [file for file in sorted(data.glob("*.csv")) if file.stat().st_size > 5000]
    mixes = [folder / f"mix_{most}.csv" for most in MIXED]
    for most, mix in zip(MIXED, mixes, strict=True):
        make_mix(files, most, mix)
    return mixes


def topic_of_comments(report: Report) -> dict[str, str]:
    """The topic that most claims of each comment are in."""
    counts: dict[str, Counter[str]] = {}
    for topic in report["topics"]:
        for subtopic in topic["subtopics"]:
            for claim in subtopic["claims"]:
                for quote in claim["quotes"]:
                    counts.setdefault(quote["comment"], Counter())[topic["id"]] += 1
    return {
        comment: min(topics, key=lambda id: (-topics[id], id)) for comment, topics in counts.items()
    }


# --- measures -------------------------------------------------------------------------------------


def contingency(first: Sequence[Any], second: Sequence[Any]) -> np.ndarray:
    rows = np.unique(np.array(first), return_inverse=True)[1]
    columns = np.unique(np.array(second), return_inverse=True)[1]
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    return table


def adjusted_rand(first: Sequence[Any], second: Sequence[Any]) -> float:
    def pairs(counts: np.ndarray) -> float:
        return float((counts * (counts - 1) / 2).sum())

    table = contingency(first, second)
    both, rows, columns = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = rows * columns / (len(first) * (len(first) - 1) / 2)
    return (both - expected) / ((rows + columns) / 2 - expected)


def mutual_information(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Normalised by the mean of the entropies."""
    table = contingency(first, second) / len(first)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    shared = sum(
        share * log(share / (rows[i] * columns[j]))
        for (i, j), share in np.ndenumerate(table)
        if share
    )
    entropies = [-sum(share * log(share) for share in shares) for shares in (rows, columns)]
    return shared / (sum(entropies) / 2) if sum(entropies) else 1.0


def tf_idf_k_means(texts: Sequence[str], clusters: int) -> list[int]:
    """The usual baseline: words weighed by rarity, k-means, the best of ten starts."""
    counted = [Counter(word.lower() for word in WORD.findall(text)) for text in texts]
    present = Counter(word for counts in counted for word in counts)
    column = {word: at for at, word in enumerate(w for w, n in present.items() if n > 1)}
    cells = [
        (row, column[word], times * log(len(texts) / present[word]))
        for row, counts in enumerate(counted)
        for word, times in counts.items()
        if word in column
    ]
    rows, columns, weights = (np.array(values) for values in zip(*cells, strict=True))
    matrix = csr_matrix((weights, (rows, columns)), shape=(len(texts), len(column))).toarray()
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    random = np.random.default_rng(0)
    labels = best = np.zeros(len(texts), int)
    most = -1.0
    for _ in range(10):
        centres = matrix[random.choice(len(matrix), clusters, replace=False)]
        for _ in range(30):
            labels = (matrix @ centres.T).argmax(axis=1)
            sums = np.stack([matrix[labels == k].sum(axis=0) for k in range(clusters)])
            centres = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
        fit = float((matrix * centres[labels]).sum())
        if fit > most:
            best, most = labels, fit
    return best.tolist()


def measure_mix(report: Report) -> dict[str, Any]:
    topics = topic_of_comments(report)
    ids = sorted(topics)
    sources, assigned = [id.split("|")[0] for id in ids], [topics[id] for id in ids]
    text = {comment["id"]: comment["text"] for comment in report["comments"]}
    baseline = tf_idf_k_means([text[id] for id in ids], len(set(assigned)))
    people = max(topic["people"] for topic in report["topics"]) / report["counts"]["people"]
    return {
        "topics": report["counts"]["topics"],
        "largest topic": round(people, 3),
        "NMI": round(mutual_information(assigned, sources), 3),
        "ARI": round(adjusted_rand(assigned, sources), 3),
        "TF-IDF NMI": round(mutual_information(baseline, sources), 3),
        "TF-IDF ARI": round(adjusted_rand(baseline, sources), 3),
    }


def names_of(report: Report) -> list[str]:
    return [
        part["name"]
        for topic in report["topics"]
        for part in (topic, *topic["subtopics"])
        if topic["id"] != "other"
    ]


def bad_names(report: Report) -> list[str]:
    """Names that no person would give, each with what is wrong."""
    text = "\n".join(comment["text"] for comment in report["comments"])
    words = {word.casefold() for word in SPACED.findall(text)}
    runs = set(KATAKANA.findall(text))
    bad = []
    for name in names_of(report):
        reasons = [reason for reason, pattern in BAD_NAMES.items() if pattern.search(name)]
        cut = [word for word in SPACED.findall(name) if word.casefold() not in words]
        cut += [run for run in KATAKANA.findall(name) if run not in runs]
        reasons += [f"cut: {word}" for word in cut if word.casefold() not in OWN_WORDS]
        bad += [f"{name} ({', '.join(reasons)})"] if reasons else []
    return bad


def scatter(report: Report) -> dict[str, Any]:
    """For comments with a keyword: in how many topics they are, and how many in the largest."""
    text = {comment["id"]: comment["text"].lower() for comment in report["comments"]}
    return spread_of(topic_of_comments(report), text)


def spread_of(topics: dict[str, str], text: dict[str, str]) -> dict[str, float]:
    shares, spread = [], []
    for keyword in KEYWORDS:
        placed = Counter(topics[id] for id in topics if keyword in text[id])
        if total := sum(placed.values()):
            shares.append(max(placed.values()) / total)
            spread.append(1 / sum((count / total) ** 2 for count in placed.values()))
    return {
        "share in the largest topic": round(float(np.mean(shares)), 3),
        "effective number of topics": round(float(np.mean(spread)), 2),
    }


# --- votes ----------------------------------------------------------------------------------------


def read_matrix(file: Path) -> tuple[list[dict[str, str]], list[str]]:
    with file.open(encoding="utf-8-sig", newline="") as source:
        rows = list(csv.DictReader(source))
    return rows, [name for name in rows[0] if name.isdigit()]


def group_agreement(report: Report, rows: Iterable[dict[str, str]]) -> float | None:
    opinions = report.get("opinions")
    if not opinions or not opinions["groups"]:
        return None
    group_of = {row["participant"]: row["group-id"] for row in rows if row["group-id"]}
    ours = {person[0]: person[3] for person in opinions["people"] if person[3]}
    both = sorted(group_of.keys() & ours.keys())
    return round(adjusted_rand([ours[id] for id in both], [group_of[id] for id in both]), 3)


def widest_gaps(rows: Sequence[dict[str, str]], comments: Sequence[str]) -> list[str]:
    """The comments on which Polis' groups differ most, by their shares of agreement."""
    groups = sorted({row["group-id"] for row in rows if row["group-id"]})
    gaps = {}
    for comment in comments:
        shares = []
        for group in groups:
            votes = [row[comment] for row in rows if row["group-id"] == group and row[comment]]
            if len(votes) < LEAST_VOTES:
                break
            shares.append(sum(float(vote) == 1 for vote in votes) / len(votes))
        else:
            gaps[comment] = max(shares) - min(shares)
    return sorted(gaps, key=lambda comment: (-gaps[comment], comment))[:WIDEST]


def gaps_among_cruxes(report: Report, widest: Iterable[str]) -> int:
    claims = {
        claim["id"]: {quote["comment"] for quote in claim["quotes"]}
        for topic in report["topics"]
        for subtopic in topic["subtopics"]
        for claim in subtopic["claims"]
    }
    divided = {
        comment
        for crux in report["cruxes"]
        for id in crux["cites"]
        for comment in claims.get(id, ())
    }
    return len(divided & set(widest))


# --- encoders -------------------------------------------------------------------------------------


class RememberingEncoder(SentenceEncoder):
    """The encoder, with every text read once; OutOfTime where reading takes too long."""

    def __init__(self, inner: SentenceEncoder, ends_at: float) -> None:
        self._inner = inner
        self._ends_at = ends_at
        self._known: dict[str, np.ndarray] = {}
        self.seconds = 0.0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        began = time.monotonic()
        new = sorted({*texts} - self._known.keys())
        try:
            for start in range(0, len(new), ENCODED):
                if time.monotonic() > self._ends_at:
                    raise OutOfTime
                some = new[start : start + ENCODED]
                self._known |= zip(some, self._inner.encode(some), strict=True)
        finally:
            self.seconds += time.monotonic() - began
        return np.stack([self._known[text] for text in texts])


class OutOfTime(Exception):
    """The time limit has passed."""


def comments_of(file: Path) -> list[Comment]:
    """The comments of a file that moderators did not reject."""
    with file.open(encoding="utf-8-sig", newline="") as source:
        rows = list(csv.DictReader(source))
    text = next(name for name in ("comment", "comment-body") if name in rows[0])
    speaker = next(name for name in ("name", "author-id") if name in rows[0])
    return [
        Comment(
            row.get("id") or row.get("comment-id") or str(number),
            number,
            row[text],
            row[speaker],
            agrees=int(row.get("agrees") or 0),
            disagrees=int(row.get("disagrees") or 0),
        )
        for number, row in enumerate(rows, 1)
        if row[text].strip() and row.get("moderated") != "-1"
    ]


def placed_topics(clustering: Clustering) -> dict[str, str]:
    """The topic that most parts of each comment are in."""
    counts: dict[str, Counter[str]] = {}
    for placement in clustering.placements:
        topic = placement.subtopic.split(".")[0]
        counts.setdefault(placement.comment, Counter())[topic] += 1
    return {
        comment: min(topics, key=lambda id: (-topics[id], id)) for comment, topics in counts.items()
    }


def divided(comments: list[Comment], encoder: SentenceEncoder | None) -> dict[str, str]:
    clustering = find_topics(comments, split_comments(comments), Brief(language="en"), encoder)
    return {id: topic for id, topic in placed_topics(clustering).items() if topic != "other"}


def encoder_row(file: Path, encoder: SentenceEncoder | None) -> dict[str, float]:
    comments = comments_of(file)
    topics = divided(comments, encoder)
    if file.stem == KEYWORD_FILE:
        return spread_of(topics, {comment.id: comment.text.lower() for comment in comments})
    sources = [id.split("|")[0] for id in topics]
    return {
        "topics": len(set(topics.values())),
        "NMI": round(float(mutual_information(list(topics.values()), sources)), 3),
        "ARI": round(adjusted_rand(list(topics.values()), sources), 3),
    }


def compare_encoders(data: Path, folder: Path, minutes: float) -> dict[str, Any]:
    """The same division of the same comments, by the words, by the encoder, and by both."""
    encoder = RememberingEncoder(sentence_encoder(), time.monotonic() + 60 * minutes)
    files = make_mixes(data, folder)
    files.append(data / f"{KEYWORD_FILE}.csv")
    figures: dict[str, Any] = {}
    for file in files:
        figures[file.stem] = {"words": encoder_row(file, None)}
        try:
            figures[file.stem]["words and encoder"] = encoder_row(file, encoder)
            with_words = embeddings.rarity_weighted_vectors
            embeddings.rarity_weighted_vectors = zero_vectors
            try:
                figures[file.stem]["encoder"] = encoder_row(file, encoder)
            finally:
                embeddings.rarity_weighted_vectors = with_words
        except OutOfTime:
            figures[file.stem]["not measured"] = f"{minutes:g} minutes were over"
    figures["encoding"] = {"texts": len(encoder._known), "seconds": round(encoder.seconds, 1)}
    return figures


def zero_vectors(texts: Sequence[str]) -> np.ndarray:
    """Vectors that are zero for every text."""
    return np.zeros((len(texts), 1), np.float32)


# --- all of it ------------------------------------------------------------------------------------


def measure(python: str, data: Path, folder: Path, keep: Path | None, model: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    files = sorted(data.glob("*.csv"))
    matrices = {votes.name.split("_")[0]: votes for votes in sorted((data / "votes").glob("*.csv"))}
    mixes = make_mixes(data, folder)
    for file in [*files, *mixes]:
        votes = next((path for name, path in matrices.items() if f"_{name}" in file.stem), None)
        target = (keep or folder) / file.stem
        target.parent.mkdir(parents=True, exist_ok=True)
        report, seconds, megabytes = build(python, file, votes, target, model)
        row: dict[str, Any] = {
            "comments": report["counts"]["comments"],
            "topics": report["counts"]["topics"],
            "seconds": seconds,
            "peak MB": megabytes,
            "bad names": bad_names(report),
        }
        if votes:
            rows, comments = read_matrix(votes)
            row["groups"] = len((report.get("opinions") or {}).get("groups", ()))
            row["ARI with Polis' groups"] = group_agreement(report, rows)
            ids = {comment["id"] for comment in report["comments"]}
            widest = widest_gaps(rows, [comment for comment in comments if comment in ids])
            row["widest gaps among cruxes"] = gaps_among_cruxes(report, widest)
            row["cruxes"] = len(report["cruxes"])
        if file.stem == KEYWORD_FILE:
            row |= scatter(report)
        if file in mixes:
            row |= measure_mix(report)
        figures[file.stem] = row
    measured = [figures[mix.stem] for mix in mixes]
    figures["mean of the mixes"] = {
        name: round(float(np.mean([row[name] for row in measured])), 3)
        for name in ("topics", "NMI", "ARI", "TF-IDF NMI", "TF-IDF ARI")
    }
    return figures


def show(figures: dict[str, Any], before: dict[str, Any]) -> None:
    for file, row in figures.items():
        print(f"\n{file}")
        for name, value in row.items():
            earlier = before.get(file, {}).get(name, "")
            print(f"  {name:32} {earlier!s:>24}  {value}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report_quality")
    parser.add_argument("data", type=Path)
    parser.add_argument("--python", default=sys.executable, help="of the installation to measure")
    parser.add_argument("--save", type=Path, help="write the figures as JSON")
    parser.add_argument("--before", type=Path, help="figures to print beside the new ones")
    parser.add_argument("--keep", type=Path, help="a folder for the reports")
    parser.add_argument("--model", default="local:", help="local:, or local:minilm")
    parser.add_argument("--encoders", action="store_true", help="compare encoders, topics only")
    parser.add_argument("--minutes", type=float, default=20, help="at most, for --encoders")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = (
            compare_encoders(options.data, Path(folder), options.minutes)
            if options.encoders
            else measure(options.python, options.data, Path(folder), options.keep, options.model)
        )
    if options.save:
        options.save.write_text(json.dumps(figures, indent=1, ensure_ascii=False))
    show(figures, json.loads(options.before.read_text()) if options.before else {})


if __name__ == "__main__":
    main()
