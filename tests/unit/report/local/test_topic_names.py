"""Topics are named with phrases that people use, as they write them."""

import pytest

from holdfast.apps.report.local.phrases import collect_phrases, root
from holdfast.apps.report.local.tokenizing import language, languages, stop_words, units
from holdfast.apps.report.local.topic_names import candidates, compose_name

ENGLISH = stop_words(("en",))


def best(texts: list[str], rows: list[int], code: str = "en") -> str:
    phrases = collect_phrases(texts, stop_words((code,)))
    names = candidates(phrases, rows, [str(at) for at in range(len(texts))], lambda phrase: 0.5)
    return compose_name(phrases, names, code, set())[0]


def test_a_phrase_is_better_than_a_word_and_capitals_are_as_people_write_them():
    texts = [
        "We must protect Social Security now.",
        "Social Security is earned.",
        "Do not cut Social Security, it is our money.",
        "They want to cut Social Security.",
        "Teachers are underpaid.",
        "Pay teachers more.",
        "The roads are broken.",
        "Fix the roads.",
    ]
    assert best(texts, [0, 1, 2, 3]) == "Social Security"


def test_a_word_that_could_name_anything_names_nothing_alone():
    texts = [
        "The city has neighborhoods that nobody looks after.",
        "Our city forgot the neighborhood by the river.",
        "In this city a neighborhood needs a park.",
        "The city could plant trees in every neighborhood.",
        "Teachers are underpaid.",
        "Pay teachers more.",
        "The roads are broken.",
        "Fix the roads.",
    ]
    assert best(texts, [0, 1, 2, 3]) == "Neighborhood"


def test_such_a_word_may_be_a_part_of_a_name():
    texts = [
        "The community center should open on Sundays.",
        "I like the community center.",
        "Please keep the community center!",
        "Teachers are underpaid.",
        "The roads are broken.",
        "Fix the roads.",
    ]
    assert best(texts, [0, 1, 2]) == "Community center"


def test_a_name_is_no_verb():
    texts = [
        "We should protect the parks.",
        "Please protect our parks",
        "They must protect parks from noise.",
        "I love the parks.",
        "Buses are late.",
        "We want buses.",
    ]
    assert best(texts, [0, 1, 2, 3]) == "Parks"


def test_small_words_hold_a_phrase_together():
    texts = [
        "Keep the separation of church and state.",
        "The separation of church and state matters",
        "I want separation of church and state!",
        "Taxes are high",
        "Roads are bad",
    ]
    assert best(texts, [0, 1, 2]) == "Separation of church and state"


def test_chinese_names_are_words_and_no_torn_pieces():
    texts = [
        "應投保乘客責任險",
        "我覺得乘客責任險很重要",
        "沒有乘客責任險就不安全",
        "計程車太貴",
        "計程車很好",
        "搭計程車",
    ]
    assert best(texts, [0, 1, 2], "zh") == "乘客責任險"


def test_a_sentence_that_is_repeated_does_not_name_a_topic_by_itself():
    texts = ["Full grown men running full speed cause harm."] * 4 + [
        "Helmets are safer.",
        "Buy better helmets.",
    ]
    assert best(texts, list(range(6))) == "Helmets"


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["The parks https://a.org/x", "https://a.org/x for parks", "@mayor our parks"], "Parks"),
        (
            [
                "Reduce military spending",
                "We reduce military spending",
                "reduce military spending now",
            ],
            "Military spending",
        ),
        (
            ["Football sucks, the helmets", "football sucks and helmets", "sucks! Helmets"],
            "Helmets",
        ),
        (
            ["Overturn Citizens United", "I hate Citizens United.", "End Citizens United!"],
            "Citizens United",
        ),
        (
            ["データセンターが必要です", "データセンターは高い", "データセンターと電力"],
            "データセンター",
        ),
    ],
)
def test_links_handles_verbs_and_cut_words_are_no_names(texts, name):
    others = ["The roads are broken.", "Fix the roads.", "More roads", "The road is long."] * 4
    code = "ja" if "データ" in texts[0] else "en"
    assert best(texts + [f"{text} {at}" for at, text in enumerate(others)], [0, 1, 2], code) == name


def test_the_organisation_that_all_talk_about_names_nothing():
    texts = [f"I like Uber for its {noun}" for noun in ("drivers", "drivers now", "drivers too")]
    texts += [f"Then Uber {verb} {at}" for at, verb in enumerate(["pays", "came", "left"] * 4)]
    assert best(texts, [0, 1, 2]) == "Drivers"


def test_siblings_never_share_a_name():
    texts = ["The bus is late.", "A bus never comes.", "The bus is full", "My bus broke down"] * 2
    phrases = collect_phrases([f"{text} {at}" for at, text in enumerate(texts)], ENGLISH)
    names_so_far: set[str] = set()
    speakers = [str(at) for at in range(8)]
    names = [
        compose_name(
            phrases, candidates(phrases, rows, speakers, lambda phrase: 0.5), "en", names_so_far
        )[0]
        for rows in ([0, 1, 2, 3], [4, 5, 6, 7])
    ]
    assert names[0] == "Bus"
    assert names[1] != names[0]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Women's", "woman"),
        ("parties", "party"),
        ("Taxes", "taxe"),
        ("bus", "bus"),
        ("class", "class"),
    ],
)
def test_plurals_and_possessives_count_together(word, expected):
    assert root(word) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("We should have more of the same for all", "en"),
        ("Wir brauchen mehr Bäume und nicht noch mehr Autos", "de"),
        ("Il faut plus de pistes pour les vélos", "fr"),
        ("Hay que plantar más árboles en la plaza", "es"),
        ("我覺得應該開放", "zh"),
        ("私は梟を愛しています", "ja"),
        ("نحن نحتاج إلى مدارس", "ar"),
        ("Черепахи очень милые", "ru"),
        ("xyzzy", "und"),
    ],
)
def test_languages_are_told_by_script_and_common_words(text, code):
    assert language(text) == code


def test_a_few_foreign_comments_do_not_make_a_language():
    assert languages(["This is the one"] * 40 + ["Das ist nicht gut und der Rest auch"]) == ["en"]


def test_scripts_without_spaces_are_compared_by_pairs():
    assert units("Uber的出現 is new", ENGLISH) == ["uber", "的出", "出現", "new"]


def test_a_place_that_a_third_of_the_people_name_names_nothing():
    texts = [f"Here in Detroit the {noun} fail us" for noun in ("schools", "schools too")]
    texts += ["Life in Detroit is hard", "I left Detroit", "Roads are bad", "Buses are late"]
    phrases = collect_phrases(texts, ENGLISH)
    phrases.leave_out_common_names([str(at) for at in range(len(texts))])
    names = candidates(phrases, [0, 1], ["a", "b", "c", "d", "e", "f"], lambda phrase: 0.5)
    assert compose_name(phrases, names, "en", set())[0] == "Schools"


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["Let the kids play", "kids play here", "Our kids play", "the kids"], "Kids"),
        (["I am pro-israel, on borders", "pro-israel borders", "The borders"], "Borders"),
        (["影響人民日常的稅", "影響人民日常的稅金", "稅金很高", "稅金太高"], "稅金"),
    ],
)
def test_clauses_sides_and_verbs_are_no_names(texts, name):
    others = ["The roads are broken.", "Fix the roads.", "More roads", "The road is long."] * 4
    code = "zh" if "稅" in texts[0] else "en"
    rows = list(range(len(texts)))
    assert best(texts + [f"{text} {at}" for at, text in enumerate(others)], rows, code) == name


def test_people_are_named_in_the_plural_and_never_by_an_adjective():
    others = ["The roads are broken.", "Fix the roads.", "More roads", "The road is long."]
    texts = ["A Republican spoke", "the Republican senator", "Republicans left", *others]
    assert best(texts, [0, 1, 2]) == "Republicans"
    texts = ["A Christian spoke", "the Christian senator", "some Christian mayor", *others]
    assert best(texts, [0, 1, 2]) == ""


def test_no_part_is_cut_out_of_a_name_with_a_prefix():
    texts = [f"It is post-traumatic prison disorder, {at}" for at in ("I say", "he said", "no")]
    texts += ["The roads are broken.", "Fix the roads.", "More roads", "The road is long."]
    assert best(texts, [0, 1, 2]) == "Post-traumatic prison disorder"


def test_a_narrow_phrase_does_not_name_what_is_about_the_topic_above():
    """Two of ten sentences about women speak of white women: the ten are about women."""
    women = ["The white women must listen", "Some white women know"]
    women += [
        f"All our women {predicate}"
        for predicate in ("march", "lead", "win", "matter", "speak", "go")
    ]
    texts = [*women, "Fix the roads.", "More roads", "The road is long.", "The roads are bad"]
    texts += [
        f"The bridges are {predicate}" for predicate in ("old", "weak", "closed", "new", "long")
    ] * 5
    phrases = collect_phrases([f"{text} {at}" for at, text in enumerate(texts)], ENGLISH)
    speakers = [str(at) for at in range(len(texts))]
    ranked = candidates(phrases, list(range(8)), speakers, lambda phrase: 0.5)
    above = [c for c in ranked if c.phrase.key == "woman"]
    name, _ = compose_name(phrases, ranked, "en", {"Women"}, above)
    assert name == "Women in general"


def test_what_few_of_many_people_say_names_nothing():
    texts = [f"Number {at} has an opinion on roads." for at in range(40)]
    texts[0] = texts[1] = "The crystal palace has roads."
    phrases = collect_phrases(texts, ENGLISH)
    people = [str(at) for at in range(len(texts))]
    names = candidates(phrases, range(len(texts)), people, lambda phrase: 0.5)
    assert not [name for name in names if "palace" in name.phrase.key]


def test_a_topic_is_general_only_where_its_name_is_used():
    texts = ["Buses are late.", "Buses are full.", "The mill is old.", "The mill is closed."]
    phrases = collect_phrases(texts, ENGLISH)
    people = [str(at) for at in range(len(texts))]
    above = candidates(phrases, [0, 1], people, lambda phrase: 0.5)
    assert compose_name(phrases, [], "en", set(), above, [0, 1])[0] == "Buses in general"
    assert compose_name(phrases, [], "en", set(), above, [2, 3])[0] == ""


def test_small_words_of_another_language_name_nothing():
    texts = ["Las calles son para las personas y no para los coches", "Las plazas son de todos"]
    texts += [f"The roads of district {at} are in a bad state." for at in range(40)]
    assert "la" not in collect_phrases(texts, ENGLISH).by_key
    assert "las" not in collect_phrases(texts, ENGLISH).by_key


def test_a_lone_gerund_and_a_lone_word_for_a_side_name_nothing():
    texts = ["Educating is hard.", "Educating costs money.", "Be liberal.", "The liberal view"]
    keys = collect_phrases(texts, ENGLISH).by_key
    assert keys.keys().isdisjoint({"educating", "liberal"})
    assert "voting" in collect_phrases(["Voting is fun.", "Voting is free."], ENGLISH).by_key


def test_what_some_do_is_no_name() -> None:
    texts = [
        "Parents worry, but children adapt.",
        "Not all children adapt.",
        "The sports club needs a hall.",
        "Our sports club is too small.",
    ]
    phrases = collect_phrases(texts, ENGLISH)
    assert phrases.fitness["child adapt"] == 0.0
    assert phrases.fitness["sport club"] > 0.1


def test_forms_of_a_german_word_are_one_and_compounds_count_for_their_parts() -> None:
    texts = [
        "Auf den Facharzt wartet man ewig.",
        "Hier fehlt ein Arzt.",
        "Die Radwege sind schmal.",
        "Der Radweg ist kaputt.",
        "Wir suchen einen Kinderarzt.",
    ]
    phrases = collect_phrases(texts, stop_words(("de",)), "de")
    assert phrases.by_key["arzt"].sentences == [0, 1, 4]
    assert phrases.by_key["radweg"].sentences == [2, 3]


def test_german_names_are_written_with_a_capital_inside_a_sentence() -> None:
    texts = [
        "Man kann draußen nicht sitzen.",
        "Es warten draußen keine Busse.",
        "Warum fahren so wenige Busse?",
    ]
    phrases = collect_phrases(texts, stop_words(("de",)), "de")
    assert phrases.fitness[root("draußen", "de")] == 0.0
    assert phrases.fitness["buss"] > 0.1


def test_elided_articles_are_no_part_of_a_word() -> None:
    texts = ["L'eau est trop chère.", "Le prix d'eau augmente.", "Nous manquons d'eau ici."]
    phrases = collect_phrases(texts, stop_words(("fr",)), "fr")
    assert phrases.by_key["eau"].sentences == [0, 1, 2]
    assert phrases.written(phrases.by_key["eau"]) == "eau"


def test_where_nouns_have_articles_a_word_that_never_has_one_names_nothing() -> None:
    texts = [
        "La gente mayor no puede entrar.",
        "Arreglen ya la calle Mayor.",
        "Los autobuses llegan tarde.",
        "Faltan autobuses en los barrios.",
    ]
    phrases = collect_phrases(texts, stop_words(("es",)), "es")
    assert phrases.fitness["mayor"] == 0.0
    assert phrases.fitness["autobus"] > 0.1
