"""The report page in a real browser: how it looks, what it does, and that it makes no request.

Screenshots are kept in `build/screenshots` for people to look at.
"""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.acceptance.chromium import chromium
from tests.unit.report.page import hostile, languages, samples

from holdfast.apps.report.model.document import Report
from holdfast.apps.report.page import render_page
from holdfast.apps.report.service import load_report

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
DESKTOP, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
OPEN_ALL = "document.querySelectorAll('details').forEach(box => { box.open = true })"
WATCH = """
window.trouble = [];
document.addEventListener('securitypolicyviolation',
  (event) => window.trouble.push(event.blockedURI));
"""

pytestmark = pytest.mark.slow


class Reader:
    """Opens reports, and notices every error, every request and every dialog on the way."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.folder = browser, folder
        self.trouble: list[str] = []
        self.contexts: list[BrowserContext] = []

    def open(
        self, report: Report, after: str = "", *, file: str = "report.html", **options: Any
    ) -> Page:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(render_page(report).encode())
        context = self.browser.new_context(
            **{"viewport": DESKTOP, "reduced_motion": "reduce"} | options
        )
        self.contexts.append(context)
        context.add_init_script(WATCH)
        page = context.new_page()
        self._listen(page)
        page.goto(path.as_uri() + after)
        if options.get("java_script_enabled", True):
            page.wait_for_selector(":root[data-ready]", state="attached")
        return page

    def _listen(self, page: Page) -> None:
        page.on("console", lambda message: self.trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: self.trouble.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith(("file:", "data:image/svg+xml", "blob:")):
            self.trouble.append(f"request: {url}")

    def done(self) -> None:
        for context in self.contexts:
            for page in context.pages:
                self.trouble += page.evaluate("window.trouble ?? []")
            context.close()
        assert self.trouble == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with chromium() as running:
        yield running


@pytest.fixture
def reader(browser: Browser, tmp_path: Path) -> Iterator[Reader]:
    reading = Reader(browser, tmp_path)
    yield reading
    reading.done()


def shoot(page: Page, name: str, **options: Any) -> None:
    page.screenshot(path=SCREENSHOTS / f"{name}.png", **options)


def fits(page: Page) -> bool:
    """Whether nothing makes the page wider than the screen."""
    return page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


# --- how it looks ---------------------------------------------------------------------------------

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "tablet": {"viewport": {"width": 820, "height": 1180}},
    "phone": {"viewport": PHONE, "has_touch": True, "is_mobile": True, "device_scale_factor": 2},
    "phone dark": {"viewport": PHONE, "has_touch": True, "is_mobile": True, "color_scheme": "dark"},
}
SECTIONS = (
    "findings",
    "glance",
    "people",
    "agreement",
    "topics",
    "cruxes",
    "matrix",
    "quotes",
    "method",
)


@pytest.mark.parametrize("look", LOOKS)
def test_it_fits_every_screen(reader: Reader, look: str) -> None:
    page = reader.open(samples.small(), **LOOKS[look])
    name = look.replace(" ", "-")
    shoot(page, f"{name}-top")
    for section in SECTIONS:
        page.locator(f"#{section}").evaluate("node => node.scrollIntoView()")
        shoot(page, f"{name}-{section}")
        assert fits(page)
    page.evaluate(OPEN_ALL)
    page.locator("#s-00").evaluate("node => node.scrollIntoView()")
    shoot(page, f"{name}-claims")
    assert fits(page)


@pytest.mark.parametrize("view", ["bars", "treemap", "dots", "map"])
@pytest.mark.parametrize("script", [True, False])
def test_every_view_can_be_chosen_with_and_without_script(
    reader: Reader, view: str, script: bool
) -> None:
    page = reader.open(samples.small(), java_script_enabled=script)
    page.click(f"label[for=view-{view}]")
    expect(page.locator(".view:visible")).to_have_count(1)
    expect(page.locator(f".view-{view}:visible")).to_have_count(1)
    if view != "map":
        page.click("label[for=unit-claims]")
        expect(page.locator(f".view-{view}.by-claims")).to_be_visible()
    page.locator("#glance").screenshot(path=SCREENSHOTS / f"view-{view}.png")


OTHERS = {
    "local": lambda: samples.small(False, False, "tension"),
    "Chinese": languages.chinese,
    "Arabic": languages.arabic,
    "empty": hostile.empty,
    "hostile": hostile.hostile,
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_other_reports_fit_too(reader: Reader, name: str, viewport: dict[str, int]) -> None:
    page = reader.open(OTHERS[name](), viewport=viewport)
    page.evaluate(OPEN_ALL)
    shoot(page, f"{name.lower()}-{viewport['width']}", full_page=True)
    assert fits(page)


def test_it_works_from_a_folder_with_an_awkward_name(reader: Reader) -> None:
    page = reader.open(
        samples.small(), "?view=treemap#g-nowhere", file="Año 1/überblick & more #1/report.html"
    )
    expect(page.locator(".view-treemap.by-people")).to_be_visible()
    page.click(".chip >> nth=0")
    expect(page.locator(".claim:target")).to_be_visible()


# --- without script -------------------------------------------------------------------------------


def test_everything_can_be_read_without_script(reader: Reader) -> None:
    page = reader.open(samples.small(), java_script_enabled=False)
    shoot(page, "no-script")
    expect(page.locator(".js-only:visible")).to_have_count(0)
    expect(page.get_by_text("Searching needs JavaScript")).to_be_visible()
    expect(page.locator(".bar:visible")).to_have_count(7)
    page.click("#s-00 > summary")
    expect(page.locator("#s-00 blockquote").first).to_be_visible()
    page.click("#s-00 .ctx >> nth=0")
    expect(page.locator(".all-comments li:target .text")).to_be_visible()
    page.click(".findings .chip >> nth=3")
    expect(page.locator(".claim:target")).to_be_visible()


def test_the_contents_open_on_a_phone_without_script(reader: Reader) -> None:
    page = reader.open(samples.small(), viewport=PHONE, java_script_enabled=False)
    expect(page.locator(".outline")).to_be_hidden()
    page.click(".tool.narrow")
    expect(page.locator(".outline")).to_be_visible()
    page.click(".outline a[href='#method']")
    expect(page.locator(".outline")).to_be_hidden()


# --- citations and context ------------------------------------------------------------------------


def test_a_citation_shows_its_claim_on_hover_and_focus_and_opens_it_on_click(
    reader: Reader,
) -> None:
    page = reader.open(samples.small())
    chip = page.locator(".finding .chip").nth(3)
    preview = page.locator("#preview")
    chip.hover()
    expect(preview).to_contain_text("Cycle lanes need a kerb")
    expect(preview).to_contain_text("Paint is not protection.")
    shoot(page, "citation")
    page.keyboard.press("Escape")
    expect(preview).to_be_hidden()
    page.locator(".finding .chip").nth(2).focus()
    page.keyboard.press("Tab")
    page.locator(".finding .chip").nth(3).focus()
    expect(preview).to_be_visible()
    chip.click()
    claim = page.locator(".claim:target")
    expect(claim).to_be_in_viewport()
    assert claim.evaluate("node => node === document.activeElement")
    assert claim.evaluate("node => node.closest('details').open")
    page.go_back()
    assert "#" not in page.url


def test_on_a_phone_a_citation_opens_a_sheet(reader: Reader) -> None:
    page = reader.open(samples.small(), **LOOKS["phone"])
    page.locator(".finding .chip").first.tap()
    expect(page.locator("#preview.sheet")).to_be_in_viewport()
    shoot(page, "phone-sheet")
    page.locator("#preview a").tap()
    expect(page.locator(".claim:target")).to_be_in_viewport()
    expect(page.locator("#preview")).to_be_hidden()


def test_a_quote_is_shown_in_its_comment_to_the_letter(reader: Reader) -> None:
    writer = samples.Writer({"district": ["north"]})
    text = "👩‍👩‍👧 We know 𝔬𝔫𝔢 thing: [[trees 🌳 cool the street]] — and that is that.\r\nYes."
    quote = writer.quote(
        "Trees cool", "Zoë", text, video="https://vimeo.com/1", timestamp="00:01:38"
    )
    claim = writer.claim("Trees cool", [quote])
    topic = samples.topic("t-0", "Trees", "", [samples.subtopic("s-0", "Shade", "", [claim])])
    page = reader.open(writer.report([topic]))
    page.click("#s-0 > summary")
    page.click(".ctx")
    expect(page.locator(".context mark")).to_have_text("trees 🌳 cool the street")
    expect(page.locator(".context")).to_contain_text("and that is that.")
    expect(page.locator(".context a")).to_have_attribute("href", "https://vimeo.com/1#t=98s")
    expect(page.locator(".ctx")).to_have_attribute("aria-expanded", "true")
    page.click(".ctx")
    expect(page.locator(".context")).to_have_count(0)


def test_what_a_quote_alone_was_taken_to_say_is_shown_with_its_context(reader: Reader) -> None:
    writer = samples.Writer()
    quote = writer.quote("Trees keep my street cool", "Zoë", "You know, [[trees keep us cool]].")
    claim = writer.claim("Trees cool the town", [quote])
    topic = samples.topic("t-0", "Trees", "", [samples.subtopic("s-0", "Shade", "", [claim])])
    report = writer.report([topic])
    page = reader.open(replace(report, method=replace(report.method, generated=True)))
    page.click("#s-0 > summary")
    expect(page.locator(".said")).to_have_attribute("hidden", "until-found")
    page.click(".ctx")
    expect(page.locator(".said")).to_have_text("Trees keep my street cool\xa0◆")
    expect(page.locator(".said")).to_be_visible()


# --- search and filters ---------------------------------------------------------------------------


def total(report: Report) -> int:
    return report.counts.quotes


def test_search_finds_words_in_any_order_case_and_accent(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.click("[data-do=search]")
    expect(page.locator("#found")).to_have_text(f"{total(samples.small())} quotes")
    page.fill("#search", "MINUTES ten zeppelin")
    expect(page.locator("#found")).to_contain_text("Nothing found")
    page.fill("#search", "TIMETÁBLE minutes")
    expect(page.locator("#found")).to_have_text(re.compile(r"^1 of \d+ quotes"))
    expect(page.locator("#results blockquote")).to_contain_text("nobody needs a timetable any more")
    assert page.locator("#results mark").all_inner_texts() == ["minutes", "timetable"]
    assert "q=TIMET" in page.url
    shoot(page, "search")


def test_filters_combine_are_in_the_address_and_the_back_button_undoes_them(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.click("[data-do=search]")
    page.select_option("[name=topic]", label="Cycling")
    in_topic = int(page.locator("#found").inner_text().split()[0])
    page.select_option("[name=subtopic]", label="Behaviour")
    page.select_option("[name=f0]", index=1)
    narrowed = int(page.locator("#found").inner_text().split()[0])
    assert 0 < narrowed < in_topic < total(samples.small())
    address = page.url
    page.go_back()
    page.go_back()
    expect(page.locator("#found")).to_contain_text(f"{in_topic} of")
    expect(page.locator("[name=subtopic]")).to_have_value("")
    page.goto(address)
    expect(page.locator("#found")).to_contain_text(f"{narrowed} of")
    page.click("[data-do=reset]")
    expect(page.locator("#found")).to_have_text(f"{total(samples.small())} quotes")
    assert "?" not in page.url


def test_results_come_fifty_at_a_time_and_each_has_a_link_of_its_own(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.click("[data-do=search]")
    expect(page.locator("#results > li")).to_have_count(50)
    page.click("[data-do=next]")
    expect(page.locator("#page")).to_have_text(re.compile(r"^2 of \d"))
    assert "page=2" in page.url
    page.locator("#results > li").first.get_by_text("Link").click()
    target = page.locator(":target")
    expect(target).to_be_in_viewport()
    assert target.get_attribute("id", timeout=1000)


def test_what_was_found_can_be_saved_and_no_cell_is_a_formula(reader: Reader) -> None:
    page = reader.open(hostile.hostile())
    page.click("[data-do=search]")
    with page.expect_download() as loading:
        page.click("[data-do=csv]")
    text = Path(loading.value.path()).read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == hostile.hostile().counts.quotes
    assert not [cell for row in rows for cell in row.values() if re.match(r"[=+\-@\t\r]", cell)]
    assert any(row["text"] == "'+1+1" for row in rows)


# --- views, orders, themes ------------------------------------------------------------------------


def names(page: Page) -> list[str]:
    return [text.removesuffix("\xa0◆") for text in page.locator(".topic > h3").all_inner_texts()]


def test_topics_can_be_sorted_and_what_fits_nowhere_stays_last(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.click("label[for=sort-name]")
    *named, last = names(page)
    assert named == sorted(named)
    assert last == "Other"
    assert "sort=name" in page.url
    page.click("label[for=sort-people]")
    topics = sorted(samples.small().topics[:-1], key=lambda topic: -topic.people)
    assert names(page)[:-1] == [topic.name for topic in topics]


def test_the_address_restores_view_unit_order_and_theme(reader: Reader) -> None:
    page = reader.open(samples.small(), "?view=dots&unit=claims&sort=name&order=name&theme=dark")
    expect(page.locator(".view-dots.by-claims")).to_be_visible()
    assert names(page)[0] == "Buses and trams"
    people = page.locator(".grid tbody th").all_inner_texts()
    assert people == sorted(people, key=str.casefold)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 21, 24)"


def test_the_theme_goes_round_and_is_remembered(reader: Reader) -> None:
    page = reader.open(samples.small(), color_scheme="light")
    shades = []
    for _ in range(3):
        page.click("[data-do=theme]")
        shades.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert shades == ["rgb(253, 252, 249)", "rgb(20, 21, 24)", "rgb(253, 252, 249)"]
    page.click("[data-do=theme]")
    page.click("[data-do=theme]")
    page.goto(page.url.partition("?")[0])
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_matrix_sorts_by_column_and_hides_people_without_positions(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.click("[data-column='2']")
    column = page.locator(".grid tbody td:nth-child(3)")
    marks = [mark.strip() for mark in column.all_inner_texts()]
    assert marks == sorted(marks, key=lambda mark: "✓·✗".find(mark) if mark else 9)
    rows = page.locator(".grid tbody tr:visible").count()
    page.uncheck("#silent")
    assert page.locator(".grid tbody tr:visible").count() > rows


# --- keyboard -------------------------------------------------------------------------------------


def test_keys_search_walk_open_and_explain(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("j/k")
    expect(page.locator("#search")).to_have_value("j/k")
    page.locator("#search").blur()
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.press("j")
    expect(page.locator(".cursor")).to_contain_text("Buses and trams")
    page.keyboard.press("j")
    expect(page.locator(".cursor h4")).to_have_text("How often and how late")
    page.keyboard.press("o")
    expect(page.locator("#s-00")).to_have_attribute("open", "")
    page.keyboard.press("j")
    expect(page.locator(".claim.cursor .no")).to_have_text("1")
    page.keyboard.press("k")
    expect(page.locator(".cursor h4")).to_have_text("How often and how late")
    page.keyboard.press("e")
    expect(page.locator(".subtopic:not([open])")).to_have_count(0)
    page.keyboard.press("e")
    expect(page.locator(".subtopic[open]")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    shoot(page, "keyboard")


def test_single_keys_can_be_switched_off(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.keyboard.press("?")
    page.uncheck("#single-keys")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    expect(page.locator(".subtopic[open]")).to_have_count(0)
    page.reload()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_hidden()


def test_everything_that_can_be_used_can_be_reached_and_seen_by_keyboard(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_in_viewport()
    focused = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        style, kind = page.evaluate(
            "[getComputedStyle(document.activeElement).outlineStyle, "
            "document.activeElement.className]"
        )
        hidden_input = page.evaluate("document.activeElement.matches('.switch input')")
        assert style != "none" or hidden_input
        focused.add(kind.split(" ")[0] if kind else "")
    assert {"tool", "chip", "bar-name"} <= focused


# --- paper ----------------------------------------------------------------------------------------


def pages(printed: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", printed))


def test_it_prints_as_deep_as_was_chosen(reader: Reader) -> None:
    page = reader.open(samples.small())
    lengths = {}
    for depth in ("summary", "topics", "everything"):
        page.evaluate(f"document.documentElement.dataset.print = '{depth}'")
        printed = page.pdf(
            path=SCREENSHOTS / f"print-{depth}.pdf", format="A4", print_background=True
        )
        lengths[depth] = pages(printed)
    assert 2 <= lengths["summary"] <= 4
    assert lengths["summary"] < lengths["topics"] < lengths["everything"]


def test_plain_printing_gives_the_summary_on_american_paper_too(reader: Reader) -> None:
    page = reader.open(samples.small())
    assert 2 <= pages(page.pdf(format="Letter", print_background=True)) <= 4


def test_with_opinion_groups_the_summary_is_no_longer(reader: Reader, tmp_path: Path) -> None:
    data = Path(__file__).parents[2] / "examples" / "data"
    out, store = tmp_path / "town", f"sqlite:///{tmp_path / 'town.db'}"
    command = ["report", "build", data / "riverside.csv", "--votes", data / "riverside-votes.csv"]
    words = [sys.executable, "-m", "holdfast", *command, "-o", out, "--store", store]
    subprocess.run([str(word) for word in words], check=True, capture_output=True)
    page = reader.open(load_report(out))
    shoot(page, "opinions")
    expect(page.locator(".landscape")).to_be_visible()
    assert 2 <= pages(page.pdf(format="A4", print_background=True)) <= 4


def test_on_paper_text_is_open_and_tools_are_gone(reader: Reader) -> None:
    page = reader.open(
        samples.small(), viewport={"width": 794, "height": 1123}, color_scheme="dark"
    )
    page.evaluate("document.documentElement.dataset.print = 'topics'")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".toolbar")).to_be_hidden()
    expect(page.locator("#s-00 blockquote").first).to_be_visible()
    expect(page.get_by_text("more in quotes.csv").first).to_be_visible()
    expect(page.locator(".glance table")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    shoot(page, "print", full_page=True)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator(".subtopic[open]")).to_have_count(0)


def test_the_print_dialog_asks_how_much(reader: Reader) -> None:
    page = reader.open(samples.small())
    page.evaluate(
        "window.print = () => { window.printed = document.documentElement.dataset.print }"
    )
    page.click("[data-do=print]")
    shoot(page, "print-dialog")
    page.check("[name=depth][value=summary]")
    page.click("#printing [value=print]")
    page.wait_for_function("window.printed")
    assert page.evaluate("window.printed") == "summary"


# --- safety ---------------------------------------------------------------------------------------


def test_a_hostile_report_runs_nothing(reader: Reader) -> None:
    page = reader.open(hostile.hostile())
    page.evaluate(OPEN_ALL)
    for link in page.locator(".ctx").all()[:30]:
        link.click()
    page.locator(".chip").first.hover()
    page.click("[data-do=search]")
    for words in ("script", "<img", "onerror", "'", "\\"):
        page.fill("#search", words)
    page.fill("[name=speaker]", "<")
    for name in ("treemap", "dots", "map"):
        page.click(f"label[for=view-{name}]")
    page.mouse.move(700, 500)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.scripts.length") == 3


# --- accessibility --------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["small", "local", "Arabic", "empty"])
def test_it_is_accessible(reader: Reader, theme: str, name: str) -> None:
    report = samples.small() if name == "small" else OTHERS[name]()
    page = reader.open(report, color_scheme=theme)
    page.evaluate(OPEN_ALL)
    if report.counts.quotes:
        page.click("[data-do=search]")
        page.fill("#search", "the" if name in ("small", "local") else "")
        page.click(".ctx >> nth=0")
    assert violations(page) == []
    page.click("[data-do=help]")
    assert violations(page) == []


def test_a_latin_title_begins_where_a_page_from_the_right_does(reader: Reader) -> None:
    page = reader.open(replace(languages.arabic(), title="Alderport 2030"))
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).textAlign") == "right"


def violations(page: Page) -> list[str]:
    """What axe finds wrong, each with the first element that has it."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {rule['nodes'][0]['html'][:160]}" for rule in violations
    ]


def test_touch_targets_are_large_enough(reader: Reader) -> None:
    page = reader.open(samples.small(), **LOOKS["phone"])
    small = page.evaluate(
        """[...document.querySelectorAll('button, .tool, summary, select, .switch label')]
        .filter((node) => node.checkVisibility())
        .filter((node) => {
          const box = node.getBoundingClientRect();
          return Math.min(box.width, box.height) < 24;
        })
        .map((node) => node.outerHTML.slice(0, 100))"""
    )
    assert small == []


# --- speed ----------------------------------------------------------------------------------------


def test_a_large_report_is_soon_ready(reader: Reader) -> None:
    """The goal is 1.5 s for 2,000 claims and 6,000 quotes. Twice that is allowed here: tests share
    the machine."""
    page = reader.open(samples.large(), viewport=PHONE)
    ready = []
    for _ in range(3):
        page.reload()
        page.wait_for_selector(":root[data-ready]", state="attached")
        ready.append(
            page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        )
    page.click("[data-do=search]")
    spent = page.evaluate(
        """() => {
          const start = performance.now();
          document.querySelector('#search').value = 'buses need';
          document.querySelector('#search').dispatchEvent(new Event('input', { bubbles: true }));
          document.body.offsetHeight;
          return performance.now() - start;
        }"""
    )
    (SCREENSHOTS / "large.json").write_text(json.dumps({"ready_ms": ready, "search_ms": spent}))
    shoot(page, "large-search")
    assert min(ready) < 3000
    assert spent < 500
