"""The same thought is counted together; its opposite never is."""

import pytest
from tests.unit.report.local.helpers import claims

from holdfast.apps.report.local.grouping import group
from holdfast.apps.report.local.polarity import contradicts, opposed, polarity

OPPOSITES = """
I need the Quay car park | The Quay car park should go
The minimum wage should be raised. | The minimum wage should not be raised.
Taxes should be increased. | Taxes should be reduced.
Guns should be banned. | Guns should be allowed.
I support the new law. | I oppose the new law.
We need more police in the city. | We need fewer police in the city.
Health care is a human right. | Health care is not a human right.
Football is good. | Football is bad.
I like football | I don't like football
Everyone should be able to vote. | Nobody should be able to vote.
Abortion should be legal. | Abortion should be illegal.
The electoral college should be abolished. | The electoral college should be kept.
We should build the wall. | We should stop the wall.
Immigrants help our economy. | Immigrants hurt our economy.
I trust the government. | I distrust the government.
The rich should pay more taxes. | The rich should pay less taxes.
The rich should pay more taxes. | The poor should pay more taxes.
Schools should open early. | Schools should open late.
The policy is fair to workers. | The policy is unfair to workers.
Uber is safe. | Uber is dangerous.
I am for nuclear power. | I am against nuclear power.
We can live with plastic bags. | We can live without plastic bags.
Children should always wear helmets. | Children should never wear helmets.
Parents should decide, not the state. | The state should decide, not parents.
Landlords exploit tenants. | Tenants exploit landlords.
Men are treated better than women. | Women are treated better than men.
I identify as a man. | I identify as a woman.
I am a Democrat. | I am a Republican.
The minimum wage should be $15. | The minimum wage should be $25.
Voting should be mandatory for citizens. | Voting should not be mandatory for citizens.
It is possible to stop climate change. | It is impossible to stop climate change.
Public schools deserve funding. | Private schools deserve funding.
The city should fund the arts. | The city should defund the arts.
Rents are too high. | Rents are too low.
There are too many cars downtown. | There are too few cars downtown.
We should keep the statue. | We should remove the statue.
The bus is cheap. | The bus is expensive.
Increase spending and reduce taxes. | Reduce spending and increase taxes.
Should guns be banned? | Guns should be banned.
The death penalty must be abolished. | The death penalty must never be abolished.
I agree with Gladwell. | I disagree with Gladwell.
Tackle football should be a school activity. | Tackle football shouldn’t be a school activity.
Marijuana use should be decriminalized. | Marijuana use should be criminalized.
Trump should be impeached. | I do not want Trump impeached as I do not want Pence.
Wir brauchen mehr Windräder. | Wir brauchen weniger Windräder.
Das Tempolimit ist sinnvoll. | Das Tempolimit ist nicht sinnvoll.
Die Steuern sollten erhöht werden. | Die Steuern sollten gesenkt werden.
Ich bin für das Projekt. | Ich bin gegen das Projekt.
Wir brauchen ein Grundeinkommen. | Wir brauchen kein Grundeinkommen.
Il faut augmenter les impôts. | Il faut baisser les impôts.
Le projet est juste. | Le projet n'est pas juste.
Il faut plus de vélos en ville. | Il faut moins de vélos en ville.
Je suis pour la réforme. | Je suis contre la réforme.
Hay que subir los impuestos. | Hay que bajar los impuestos.
La ley es justa. | La ley no es justa.
Apoyo la reforma. | Rechazo la reforma.
我贊成Uber合法化 | 我反對Uber合法化
政府應該管制司機資料 | 政府不應該管制司機資料
Uber比計程車安全 | Uber比計程車危險
應該增加計程車數量 | 應該減少計程車數量
搭乘Uber讓我覺得有保障 | 搭乘Uber讓我覺得沒有保障
政府应该允许网约车 | 政府应该禁止网约车
乘客應該評價司機 | 司機應該評價乘客
計程車比Uber便宜 | Uber比計程車便宜
"""

SAME = """
Overturn Citizens United | Citizens United needs to be overturned.
Impeach Trump! | Trump should be impeached.
Money out of politics. | We need to get the money out of politics.
It's time to end the Electoral College. | We need to abolish the Electoral College.
We must have campaign finance reform | We need campaign finance reforms.
Football is going to have a hiring problem next year. | Next year, football is going to have a hiring problem.
Women deserve equal pay for equal work | Women should receive equal pay for equal work.
We must abolish the death penalty | The death penalty needs to be abolished
Uber提供了高品質的乘車環境 | UBER提供了更便利及高品質的乘車環境
Tackle football should not be a school activity. | Tackle football should not be a high school activity
"""


def pairs(text: str) -> list[tuple[str, str]]:
    return [
        (first.strip(), second.strip())
        for first, second in (line.split("|") for line in text.strip().split("\n"))
    ]


def grouped(*statements: str) -> list[set[str]]:
    all_claims = claims(*statements)
    statement_of = {claim.id: claim.statement for claim in all_claims}
    return [{statement_of[member] for member in entry.members} for entry in group(all_claims)]


@pytest.mark.parametrize(("first", "second"), pairs(OPPOSITES))
def test_opposites_differ_both_ways_and_never_merge(first, second):
    assert opposed(polarity(first), polarity(second))
    assert opposed(polarity(second), polarity(first))
    assert len(grouped(first, second)) == 2
    assert len(grouped(second, first, second, first)) == 2


@pytest.mark.parametrize(("first", "second"), pairs(SAME))
def test_the_same_thought_merges(first, second):
    assert not opposed(polarity(first), polarity(second))
    assert len(grouped(first, second, "The library closes far too soon on Sundays.")) == 2


def test_identical_texts_always_merge_whatever_they_say():
    odd = ["Don't never stop banning more or less 15 things?", "不不不", "!!!", "a"]
    assert sorted(map(len, grouped(*odd, *odd))) == [1, 1, 1, 1]
    assert len(group(claims(*odd, *odd))) == 4


def test_marks_and_capitals_do_not_matter():
    assert (
        len(
            grouped("Climate change is REAL.", "climate change is real", "Climate change is real!!")
        )
        == 1
    )


def test_every_claim_is_in_exactly_one_group():
    all_claims = claims(
        *(statement for pair in pairs(OPPOSITES) + pairs(SAME) for statement in pair)
    )
    members = [member for entry in group(all_claims) for member in entry.members]
    assert sorted(members) == sorted(claim.id for claim in all_claims)


def test_the_statement_of_a_group_is_its_first_members():
    all_claims = claims(
        "We need more buses.",
        "We need more buses now.",
        "Taxes are too high.",
        "We need more buses",
    )
    statement_of = {claim.id: claim.statement for claim in all_claims}
    assert all(member.statement == statement_of[member.members[0]] for member in group(all_claims))


def test_the_largest_group_comes_first():
    assert [
        len(road.members) for road in group(claims("Trees.", "Buses!", "Trees", "trees", "Roads"))
    ] == [3, 1, 1]


def test_every_member_resembles_the_claim_that_leads_and_not_just_the_last():
    chain = [
        "We need more buses",
        "We need more buses and trams",
        "We need more buses, trams and trains",
        "We need more trams, trains and ferries",
        "We need more trains, ferries and cable cars",
    ]
    largest = max(grouped(*chain), key=len)
    assert not {chain[0], chain[-1]} <= largest


def test_only_what_is_opposite_contradicts():
    assert contradicts(polarity("Guns should be banned."), polarity("Guns should not be banned."))
    assert contradicts(polarity("Taxes should go up."), polarity("Taxes should go down."))
    assert not contradicts(polarity("I identify as a man."), polarity("I identify as a woman."))
    assert not contradicts(polarity("The wage should be $15."), polarity("The wage should be $25."))
    assert not contradicts(polarity("Is it good?"), polarity("It is not good."))
