"""The language that most comments are in."""

from __future__ import annotations

import pytest

from holdfast.apps.report.reading.language import LanguageSample

SENTENCES = {
    "en": "We should build more parks because the children need them. It is not safe to walk on "
    "this street.",
    "fr": "Il faut plus de parcs pour les enfants. Les transports sont trop chers et nous ne "
    "pouvons pas attendre.",
    "de": "Wir brauchen mehr Grünflächen für die Kinder. Der Bus ist nicht pünktlich und das ist "
    "ein Problem.",
    "es": "Necesitamos más parques para los niños. El transporte es muy caro y no llega a todos "
    "los barrios.",
    "it": "Abbiamo bisogno di più parchi per i bambini. Il trasporto è caro e non arriva in tutti "
    "i quartieri.",
    "pt": "Precisamos de mais parques para as crianças. O transporte é caro e não chega a todos "
    "os bairros da cidade.",
    "nl": "We hebben meer parken nodig voor de kinderen. Het is niet veilig om op straat te lopen "
    "en dat moet anders.",
    "sv": "Vi behöver fler parker för barnen. Det är inte säkert att gå på gatan och bussarna är "
    "för dyra.",
    "fi": "Tarvitsemme lisää puistoja, koska lapset ovat tärkeitä. Se on kallista, mutta ei niin "
    "kallista.",
    "pl": "Potrzebujemy więcej parków dla dzieci. To nie jest bezpieczne i się nie zmieni, jak "
    "nie będzie na to.",
    "tr": "Çocuklar için daha çok park olmalı. Bu şehir için çok önemli bir konu ve ulaşım da "
    "pahalı.",
    "id": "Kami butuh lebih banyak taman untuk anak. Transportasi tidak murah dan ini adalah "
    "masalah yang harus.",
    "vi": "Chúng tôi cần nhiều công viên cho trẻ em. Giao thông không an toàn và đây là một vấn "
    "đề của thành phố.",
    "zh": "我們需要更多的公園，因為孩子們沒有地方玩。",
    "ja": "子どもたちのために、もっと公園が必要です。",
    "ko": "아이들을 위해 더 많은 공원이 필요합니다.",
    "ru": "Нам нужно больше парков для детей. Дороги плохие.",
    "uk": "Нам потрібно більше парків для дітей. Їх немає.",
    "ar": "نحن بحاجة إلى المزيد من الحدائق للأطفال",
    "fa": "ما به پارک‌های بیشتری برای بچه‌ها نیاز داریم",
    "he": "אנחנו צריכים יותר פארקים לילדים",
    "el": "Χρειαζόμαστε περισσότερα πάρκα για τα παιδιά",
    "th": "เราต้องการสวนสาธารณะมากขึ้นสำหรับเด็ก",
    "hi": "हमें बच्चों के लिए और पार्क चाहिए",
}


def told(*texts: str) -> str:
    sample = LanguageSample()
    for text in texts:
        sample.add(text)
    return sample.language


@pytest.mark.parametrize(("language", "text"), SENTENCES.items(), ids=SENTENCES)
def test_a_language_is_told(language, text):
    assert told(text) == language


@pytest.mark.parametrize(
    "text",
    ["", "!?", "12 34", "asdf qwer zxcv", "Lorem ipsum dolor sit amet consectetur adipiscing"],
)
def test_what_can_not_be_told_is_undetermined(text):
    assert told(text) == "und"


def test_most_comments_decide():
    assert told(SENTENCES["en"], SENTENCES["en"], SENTENCES["ru"]) == "en"
    assert told(SENTENCES["zh"], SENTENCES["zh"], "Uber is ok") == "zh"


def test_a_mixture_without_a_majority_is_undetermined():
    assert told(SENTENCES["ru"], SENTENCES["ar"], SENTENCES["el"], SENTENCES["hi"]) == "und"


def test_a_long_file_is_sampled():
    sample = LanguageSample()
    for _ in range(2000):
        sample.add(SENTENCES["en"])
    for _ in range(9000):
        sample.add(SENTENCES["de"])
    assert sample.language == "en"
