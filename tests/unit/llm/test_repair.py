"""Finding the answer in what a model says, and what it is told when there is none."""

import asyncio
from collections.abc import Iterable

import pytest
from pydantic import BaseModel

from holdfast.adapters.llm import repair
from holdfast.adapters.llm.answer_types import answer_type
from holdfast.adapters.llm.protocol import Prompt, Reply
from holdfast.adapters.llm.repair import Unusable, find_json
from holdfast.ports.language_model import Declined, Malformed, TooLong


class Answer(BaseModel):
    number: int
    word: str = ""


PROMPT = Prompt("numbers", "Say a number.", ("the data",), {}, 100)
FENCE = "```"


def said(text: str, finish="stop") -> Reply:
    return Reply(text, 1, 1, finish=finish)


def asked(replies: Iterable[Reply], check=None) -> tuple[Answer, list[Prompt]]:
    prompts: list[Prompt] = []
    remaining = iter(replies)

    async def send(prompt: Prompt) -> Reply:
        prompts.append(prompt)
        return next(remaining)

    return asyncio.run(repair.ask(send, PROMPT, answer_type(Answer), check)), prompts


@pytest.mark.parametrize(
    "text",
    [
        '{"number": 5}',
        '\ufeff  {"number": 5}\n',
        f'{FENCE}json\n{{"number": 5}}\n{FENCE}',
        f'Here you are:\n{FENCE}\n{{"number": 5}}\n{FENCE}\nAnything else {{like this}}?',
        'Certainly! {"number": 5} I hope {that} helps :-}',
        'First {a brace}, then {"number": 5}',
        '{"number": "5"}',
        '{"number": 5, "confidence": 1, "word": ""}',
    ],
)
def test_an_answer_is_found_in_what_is_around_it(text):
    answer, prompts = asked([said(text)])
    assert answer.number == 5
    assert len(prompts) == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("I'm sorry.", "not valid JSON"),
        ('{"number": 5', "not valid JSON"),
        ('{"number": NaN}', "NaN is not JSON"),
        ('{"number": -Infinity}', "Infinity is not JSON"),
        ('{"number": 1e999}', "1e999 is no number"),
        ('{"number": 1' + "0" * 5000 + "}", "not valid JSON"),
        ('{"number": 5}{"number": 6}', "holds 2 JSON objects"),
        ('{"number": 5}\n\nor\n\n{"number": 5}', "holds 2 JSON objects"),
        (
            f'{FENCE}json\n{{"number": 5}}\n{FENCE}\n{FENCE}json\n{{"number": 6}}\n{FENCE}',
            "holds 2 JSON objects",
        ),
        ('{"a":' * 100_000, "not valid JSON"),
        ("{" * 1_000_000, "not valid JSON"),
        ("[" * 1_000_000, "not valid JSON"),
    ],
)
def test_what_is_no_answer_is_told_so(text, fault):
    with pytest.raises(Unusable, match=fault.replace("(", r"\(")):
        find_json(text)


def test_the_answer_goes_back_with_what_is_wrong_about_it():
    answer, prompts = asked([said('{"number": "five", "word": []}'), said('{"number": 5}')])
    assert answer.number == 5
    question, wrong, why = prompts[1].turns
    assert (question, wrong) == ("the data", '{"number": "five", "word": []}')
    assert "number: Input should be a valid integer" in why
    assert "word: Input should be a valid string" in why


def test_the_caller_may_find_fault_with_an_answer_that_fits():
    def odd(answer: Answer) -> str | None:
        return None if answer.number % 2 else "The number is even."

    answer, prompts = asked([said('{"number": 4}'), said('{"number": 5}')], odd)
    assert answer.number == 5
    assert "The number is even." in prompts[1].turns[2]


def test_after_two_repairs_it_is_left_to_the_engine():
    with pytest.raises(Malformed, match="after 2 repairs: It is empty"):
        asked([said("no"), said('{"word": 1}'), said("")])


def test_only_the_last_bad_answer_is_sent_back():
    _, prompts = asked([said("one"), said("two"), said('{"number": 1}')])
    assert [len(prompt.turns) for prompt in prompts] == [1, 3, 3]
    assert prompts[2].turns[1] == "two"


def test_a_long_bad_answer_is_sent_back_shortened():
    _, prompts = asked([said("x" * 6_000), said('{"number": 1}')])
    assert len(prompts[1].turns[1]) == 4_000


def test_an_answer_that_was_cut_off_gets_twice_the_room():
    answer, prompts = asked(
        [said('{"num', "length"), said('{"number": 5', "length"), said('{"number": 5}')]
    )
    assert answer.number == 5
    assert [prompt.max_output for prompt in prompts] == [100, 200, 400]
    assert all(prompt.turns == ("the data",) for prompt in prompts)


def test_an_answer_that_never_fits_is_too_long():
    with pytest.raises(TooLong, match="400 tokens: ask about less"):
        asked([said("{", "length")] * 3)


def test_a_refusal_is_final():
    with pytest.raises(Declined, match="'numbers': not this"):
        asked([said("not this", "declined")])


def test_an_answer_longer_than_the_limit_allows_is_not_even_read():
    with pytest.raises(Malformed, match="far longer"):
        asked([said('{"number": 5, "word": "' + "x" * 7_000 + '"}')] * 3)


def test_half_a_surrogate_pair_is_no_text():
    with pytest.raises(Malformed, match="half of a surrogate pair"):
        asked([said('{"number": 5, "word": "\\uD800"}')] * 3)
    assert asked([said('{"number": 5, "word": "\\ud83d\\ude00"}')])[0].word == "😀"


def test_a_million_faults_are_told_in_few_words():
    class Many(BaseModel):
        numbers: list[int]

    many = '{"numbers": [' + ",".join(['"x"'] * 3_000) + "]}"
    with pytest.raises(Unusable) as caught:
        repair.read(said(many), Prompt("n", "", ("",), {}, 4_096), answer_type(Many), None)
    assert "and 2995 more" in str(caught.value)
    assert len(str(caught.value)) < 1_000
