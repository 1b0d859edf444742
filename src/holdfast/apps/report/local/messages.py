"""The few words of its own that the local analyst uses around people's words, in the languages of
the report page."""

from __future__ import annotations

_ENGLISH = {
    "about": "Comments about {phrases}.",
    "and": " and ",
    "comma": ", ",
    "colon": ": ",
    "one": " (1 person)",
    "people": " ({count} people)",
    "raised": "{topic}, raised by {people} people. Most often: {claim}",
    "example": "{topic}, raised by {people} people. For example: {claim}",
    "raised by one": "{topic}, raised by 1 person: {claim}",
    "tension": "{agree} and {disagree} seem to say opposite things here. The other side: {other}",
    "people plain": "{count} people",
    "one plain": "1 person",
    "few": "There are only {count} comments with a statement, so topics are a rough guide.",
    "foreign": "Most comments are not in English. They were compared by the words and characters they share, not by "
    "meaning, "
    "so the same thought in other words may be in another place.",
    "selected": "Long comments were shortened to the sentences that claim most: {kept} of {all} sentences are quoted.",
    "given": "{count} comments were put into the topics that were given, where they share their words or meaning.",
    "method": "Topics, claims and groups were found by counting and comparing words, without a language model: every "
    "statement is "
    "a sentence from a comment, and names of topics are phrases that people used.",
    "merging": "Only claims that say nearly the same in nearly the same words are counted together, so the number of "
    "people "
    "behind a thought is a lower bound.",
    "tensions": "Disagreement was looked for in the words alone. What is shown as a possible tension is a hint, not "
    "a finding.",
    "weaker": "The comparison knows English best. For comments in this language it relies on shared words and "
    "characters.",
}

_OTHERS = {
    "fr": {
        "about": "Commentaires sur {phrases}.",
        "and": " et ",
        "colon": " : ",
        "one": " (1 personne)",
        "people": " ({count} personnes)",
        "raised": "{topic} : évoqué par {people} personnes. Le plus souvent : {claim}",
        "example": "{topic} : évoqué par {people} personnes. Par exemple : {claim}",
        "raised by one": "{topic} : évoqué par 1 personne : {claim}",
        "tension": "{agree} et {disagree} semblent dire ici le contraire. L'autre côté : {other}",
        "people plain": "{count} personnes",
        "one plain": "1 personne",
        "few": "Seuls {count} commentaires contiennent une affirmation : les thèmes ne sont qu'indicatifs.",
        "foreign": "La plupart des commentaires ne sont pas en anglais. Ils ont été comparés par les mots et "
        "caractères qu'ils "
        "partagent, non par le sens : une même idée dite autrement peut se trouver ailleurs.",
        "selected": "Les longs commentaires ont été réduits aux phrases les plus affirmatives : {kept} phrases "
        "citées sur {all}.",
        "given": "{count} commentaires ont été placés dans les thèmes donnés, d'après leurs mots ou leur sens.",
        "method": "Thèmes, affirmations et groupes ont été trouvés en comptant et comparant des mots, sans modèle de "
        "langage : chaque "
        "affirmation est une phrase d'un commentaire, et les noms des thèmes sont des expressions "
        "employées par les "
        "gens.",
        "merging": "Seules les affirmations presque identiques sont comptées ensemble : le nombre de personnes est "
        "un minimum.",
        "tensions": "Le désaccord a été cherché dans les mots seuls. Une tension possible est un indice, pas un "
        "résultat.",
        "weaker": "La comparaison connaît surtout l'anglais. Pour cette langue, elle s'appuie sur les mots et "
        "caractères partagés.",
    },
    "de": {
        "about": "Kommentare über {phrases}.",
        "and": " und ",
        "one": " (1 Person)",
        "people": " ({count} Personen)",
        "raised": "{topic}: angesprochen von {people} Personen. Am häufigsten: {claim}",
        "example": "{topic}: angesprochen von {people} Personen. Zum Beispiel: {claim}",
        "raised by one": "{topic}: angesprochen von 1 Person: {claim}",
        "tension": "{agree} und {disagree} scheinen hier das Gegenteil zu sagen. Die andere Seite: {other}",
        "people plain": "{count} Personen",
        "one plain": "1 Person",
        "few": "Nur {count} Kommentare enthalten eine Aussage; die Themen sind daher nur ein grober Anhalt.",
        "foreign": "Die meisten Kommentare sind nicht auf Englisch. Verglichen wurden gemeinsame Wörter und Zeichen, "
        "nicht die "
        "Bedeutung; derselbe Gedanke in anderen Worten kann daher an anderer Stelle stehen.",
        "selected": "Lange Kommentare wurden auf die Sätze gekürzt, die am meisten behaupten: {kept} von {all} "
        "Sätzen werden zitiert.",
        "given": "{count} Kommentare kamen in die vorgegebenen Themen, nach gemeinsamen Wörtern oder Bedeutung.",
        "method": "Themen, Aussagen und Gruppen entstanden durch Zählen und Vergleichen von Wörtern, ohne "
        "Sprachmodell: Jede Aussage "
        "ist ein Satz aus einem Kommentar, und die Namen der Themen sind Wendungen der Leute.",
        "merging": "Zusammengezählt wird nur, was fast dasselbe in fast denselben Worten sagt; die Zahl der Personen "
        "ist eine Untergrenze.",
        "tensions": "Widerspruch wurde nur in den Worten gesucht. Eine mögliche Spannung ist ein Hinweis, kein Befund.",
        "weaker": "Der Vergleich kennt Englisch am besten. In dieser Sprache stützt er sich auf gemeinsame Wörter "
        "und Zeichen.",
    },
    "es": {
        "about": "Comentarios sobre {phrases}.",
        "and": " y ",
        "one": " (1 persona)",
        "people": " ({count} personas)",
        "raised": "{topic}: lo mencionaron {people} personas. Sobre todo: {claim}",
        "example": "{topic}: lo mencionaron {people} personas. Por ejemplo: {claim}",
        "raised by one": "{topic}: lo mencionó 1 persona: {claim}",
        "tension": "{agree} y {disagree} parecen decir aquí lo contrario. La otra parte: {other}",
        "people plain": "{count} personas",
        "one plain": "1 persona",
        "few": "Solo {count} comentarios contienen una afirmación: los temas son orientativos.",
        "foreign": "La mayoría de los comentarios no están en inglés. Se compararon por las palabras y los "
        "caracteres que comparten, "
        "no por su sentido: la misma idea con otras palabras puede estar en otro lugar.",
        "selected": "Los comentarios largos se redujeron a las frases que más afirman: se citan {kept} de {all} "
        "frases.",
        "given": "{count} comentarios se pusieron en los temas dados, por sus palabras o su sentido.",
        "method": "Los temas, las afirmaciones y los grupos se hallaron contando y comparando palabras, sin modelo "
        "de lenguaje: cada "
        "afirmación es una frase de un comentario y los nombres de los temas son expresiones de la "
        "gente.",
        "merging": "Solo se cuenta junto lo que dice casi lo mismo con casi las mismas palabras: el número de "
        "personas es un mínimo.",
        "tensions": "El desacuerdo se buscó solo en las palabras. Una posible tensión es un indicio, no un resultado.",
        "weaker": "La comparación conoce mejor el inglés. En este idioma se apoya en palabras y caracteres "
        "compartidos.",
    },
    "ja": {
        "about": "{phrases}についてのコメント。",
        "and": "、",
        "comma": "、",
        "colon": "：",
        "one": "（1人）",
        "people": "（{count}人）",
        "raised": "「{topic}」は{people}人が取り上げました。最も多いのは：{claim}",
        "example": "「{topic}」は{people}人が取り上げました。例：{claim}",
        "raised by one": "「{topic}」は1人が取り上げました：{claim}",
        "tension": "ここでは{agree}と{disagree}が反対のことを言っているようです。もう一方：{other}",
        "people plain": "{count}人",
        "one plain": "1人",
        "few": "意見を含むコメントは{count}件だけなので、トピックはおおまかな目安です。",
        "foreign": "ほとんどのコメントは英語ではありません。意味ではなく共通する語や文字で比べたため、"
        "同じ考えが別の場所にあることがあります。",
        "selected": "長いコメントは主張の強い文に絞りました：{all}文のうち{kept}文を引用しています。",
        "given": "{count}件のコメントを、語や意味に基づいて指定されたトピックに入れました。",
        "method": "トピック、主張、グループは、言語モデルを使わず、語を数えて比べることで見つけました。"
        "主張はすべてコメントの文であり、"
        "トピック名は人々が使った言葉です。",
        "merging": "ほぼ同じ言葉でほぼ同じことを述べた主張だけをまとめて数えるため、人数は下限です。",
        "tensions": "対立は言葉だけから探しました。「対立の可能性」は手がかりであり、結論ではありません。",
        "weaker": "比較は英語を最も得意とします。この言語では共通する語や文字に頼っています。",
    },
    "zh": {
        "about": "關於{phrases}的意見。",
        "and": "和",
        "comma": "、",
        "colon": "：",
        "one": "（1人）",
        "people": "（{count}人）",
        "raised": "「{topic}」有{people}人提到，最多人說：{claim}",
        "example": "「{topic}」有{people}人提到，例如：{claim}",
        "raised by one": "「{topic}」有1人提到：{claim}",
        "tension": "這裡{agree}和{disagree}的說法似乎相反。另一方：{other}",
        "people plain": "{count}人",
        "one plain": "1人",
        "few": "只有{count}則意見含有陳述，主題僅供參考。",
        "foreign": "多數意見不是英文。比較的依據是共同的詞和字，而不是意思；同一個想法換個說法，可能會在別處。",
        "selected": "較長的意見只保留主張最明確的句子：{all}句中引用{kept}句。",
        "given": "{count}則意見依用詞或意思歸入指定的主題。",
        "method": "主題、主張和分組是靠統計和比較用詞得到的，沒有使用語言模型：每個主張都是意見中的原句，"
        "主題名稱是大家用過的詞語。",
        "merging": "只有用詞和意思都幾乎相同的主張才合併計算，所以人數是下限。",
        "tensions": "分歧只從字面尋找。「可能的分歧」是線索，不是結論。",
        "weaker": "比較方法最熟悉英文；對這種語言，主要依據共同的詞和字。",
    },
    "ar": {
        "about": "تعليقات حول {phrases}.",
        "and": " و",
        "comma": "، ",
        "one": " (شخص واحد)",
        "people": " ({count} أشخاص)",
        "raised": "{topic}: ذكره {people} أشخاص، وغالبًا هكذا: {claim}",
        "example": "{topic}: ذكره {people} أشخاص، مثلًا: {claim}",
        "raised by one": "{topic}: ذكره شخص واحد: {claim}",
        "tension": "يبدو أن {agree} و{disagree} يقولون هنا أشياء متعاكسة. الطرف الآخر: {other}",
        "people plain": "{count} أشخاص",
        "one plain": "شخص واحد",
        "few": "يحتوي {count} تعليقات فقط على رأي، لذلك فالمواضيع دليل تقريبي.",
        "foreign": "معظم التعليقات ليست بالإنجليزية. قورنت بحسب الكلمات والحروف المشتركة لا بحسب المعنى، فقد تجد "
        "الفكرة نفسها في موضع آخر.",
        "selected": "اختُصرت التعليقات الطويلة إلى أوضح جملها: اقتُبست {kept} من {all} جملة.",
        "given": "وُضع {count} تعليقات في المواضيع المحددة بحسب كلماتها أو معناها.",
        "method": "استُخرجت المواضيع والآراء والمجموعات بعدّ الكلمات ومقارنتها دون نموذج لغوي: كل رأي جملة من تعليق، "
        "وأسماء المواضيع عبارات استعملها الناس.",
        "merging": "لا يُجمع إلا ما يكاد يقول الشيء نفسه بالكلمات نفسها، فعدد الأشخاص حد أدنى.",
        "tensions": "بُحث عن الخلاف في الكلمات وحدها. الخلاف المحتمل إشارة وليس نتيجة.",
        "weaker": "المقارنة تعرف الإنجليزية أكثر. في هذه اللغة تعتمد على الكلمات والحروف المشتركة.",
    },
}


def base_language(language: str) -> str:
    """A language without its region: `zh-TW` is `zh`."""
    return language.replace("_", "-").split("-")[0].lower()


def message(language: str, key: str, **values: object) -> str:
    """A phrase in a language, English where there is none."""
    return _OTHERS.get(base_language(language), _ENGLISH).get(key, _ENGLISH[key]).format(**values)


def listed(language: str, phrases: list[str]) -> str:
    """ "a, b and c"."""
    if len(phrases) < 2:
        return "".join(phrases)
    return message(language, "comma").join(phrases[:-1]) + message(language, "and") + phrases[-1]


def with_people(language: str, people: int) -> str:
    """ " (7 people)", to put behind a claim."""
    return message(language, "one" if people == 1 else "people", count=people)


def plainly(language: str, people: int) -> str:
    """ "7 people"."""
    return message(language, "one plain" if people == 1 else "people plain", count=people)
