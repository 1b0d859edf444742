"""`python -m benchmarks.report_labelled`: topics of small files beside the subjects that we gave.

`labelled/` holds files of 33 to 54 comments in several languages, written for this: a line is a
subject, `|` and a comment; what says nothing is under `nothing` and does not count. Measured for
each: how many topics there are, NMI and ARI of topics against subjects, and their names. Files so
small share few words, and one that mixes languages is divided by them: the figures are low, and
good for telling one state of the project from another only."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

from benchmarks.report_quality import adjusted_rand, mutual_information, placed_topics
from holdfast.apps.report.local.tokenizing import languages
from holdfast.apps.report.local.topics import find_topics, split_comments
from holdfast.apps.report.model.brief import Brief
from holdfast.apps.report.model.comment import Comment

FOLDER = Path(__file__).with_name("labelled")
NOTHING = "nothing"


def measure(file: Path) -> tuple[int, float, float, list[str]]:
    """Topics, NMI, ARI and names."""
    lines = [line.split("|", 1) for line in file.read_text(encoding="utf-8").splitlines()]
    comments = [
        Comment(str(at), at + 1, text, f"person {at}") for at, (_, text) in enumerate(lines)
    ]
    language = languages(comment.text for comment in comments)[0]
    clustering = find_topics(comments, split_comments(comments), Brief(language=language))
    topics = placed_topics(clustering)
    kept = [at for at, (subject, _) in enumerate(lines) if subject != NOTHING]
    found, given = [topics[str(at)] for at in kept], [lines[at][0] for at in kept]
    return (
        len(clustering.topics),
        float(mutual_information(found, given)),
        float(adjusted_rand(found, given)),
        [topic.name for topic in clustering.topics],
    )


def main() -> None:
    measured = {file.stem: measure(file) for file in sorted(FOLDER.glob("*.txt"))}
    for name, (topics, information, rand, names) in measured.items():
        print(f"{name:14} {topics} topics  NMI {information:.2f}  ARI {rand:.2f}  {names}")
    print(
        f"mean           NMI {mean(row[1] for row in measured.values()):.2f}  "
        f"ARI {mean(row[2] for row in measured.values()):.2f}"
    )


if __name__ == "__main__":
    main()
