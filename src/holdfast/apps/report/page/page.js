// What the report page can do beyond being read: links that open things, filters, sorting, keys,
// printing.
// All text is in the document already; nothing is fetched, and nothing here is needed to read.

const root = document.documentElement;
const data = JSON.parse(document.getElementById("data").textContent);
const first = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const at = (id) => document.getElementById(id);

// --- words ---------------------------------------------------------------------------------------

const locale = data.language === "ar" ? "ar-u-nu-latn" : data.language;
const numbers = new Intl.NumberFormat(locale);
const plurals = new Intl.PluralRules(locale);

function say(key, values = {}) {
  let text = data.words[key];
  if (typeof text === "object") text = text[plurals.select(values.n)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (_, name) =>
    typeof values[name] === "number" ? numbers.format(values[name]) : values[name],
  );
}

/** An element. Text is always set as text, so nothing that people wrote can become markup. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== undefined && child !== ""));
  return element;
}

function toast(text) {
  const box = at("toast");
  box.textContent = text;
  box.classList.add("on");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => box.classList.remove("on"), 2000);
}

function stored(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch {
    // Without storage a choice lasts as long as the page.
  }
  return null;
}

// --- the address: view, order and filters are in it, so that a link shows what its sender saw ----

const query = () => new URLSearchParams(location.search);

/** Write values into the address; empty ones go. `step` makes a place that the back button returns
 * to. */
function address(values, step = true) {
  const now = query();
  for (const [name, value] of Object.entries(values)) {
    if (value) now.set(name, value);
    else now.delete(name);
  }
  const search = now.toString();
  if (search === query().toString()) return;
  const url = location.pathname + (search ? `?${search}` : "") + location.hash;
  history[step ? "pushState" : "replaceState"](null, "", url);
}

const readers = [];

/** Do something with the address now, and again whenever the reader goes back or forth. */
function follow(read) {
  readers.push(read);
  read(query());
}

window.addEventListener("popstate", () => readers.forEach((read) => read(query())));

// --- switches: view, unit, orders ----------------------------------------------------------------

const sorters = {
  sort: sortTopics,
  order: (order) => sortMatrix(order),
};

function startSwitch(group) {
  const name = group.dataset.state;
  const inputs = all("input", group);
  const usual = inputs.find((input) => input.defaultChecked).value;
  group.addEventListener("change", (event) => {
    address({ [name]: event.target.value === usual ? "" : event.target.value });
    sorters[name]?.(event.target.value);
  });
  follow((params) => {
    const wanted =
      inputs.find((input) => input.value === params.get(name)) ??
      inputs.find((input) => input.value === usual);
    const changed = !wanted.checked;
    wanted.checked = true;
    if (changed) sorters[name]?.(wanted.value);
  });
}

function sortTopics(order) {
  const name = (topic) => first("h3", topic).textContent;
  const compare =
    order === "name"
      ? (a, b) => name(a).localeCompare(name(b), locale)
      : (a, b) => b.dataset[order] - a.dataset[order];
  const isOther = (topic) => topic.id === "t-other";
  for (const list of all(".topic-list"))
    list.append(...all(".topic", list).sort((a, b) => isOther(a) - isOther(b) || compare(a, b)));
}

// --- theme ---------------------------------------------------------------------------------------

const themes = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
}

function nextTheme() {
  const theme = themes[(themes.indexOf(root.dataset.theme ?? "auto") + 1) % themes.length];
  setTheme(theme);
  stored("holdfast-theme", theme);
  address({ theme: theme === "auto" ? "" : theme }, false);
  toast(say(`theme_${theme}`));
}

// --- going somewhere: whatever hides the target is opened first ----------------------------------

function openAround(element) {
  const inside = element.matches("summary") ? element.parentElement.parentElement : element;
  for (let box = inside.closest("details"); box; box = box.parentElement.closest("details")) {
    box.open = true;
  }
}

function arrive(element, { focus = true } = {}) {
  openAround(element);
  const block = element.matches("section, article, details") ? "start" : "center";
  element.scrollIntoView({ block });
  if (!focus) return;
  const takesFocus = element.matches("a, button, input, summary");
  if (!element.hasAttribute("tabindex") && !takesFocus) element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

function arriveAtHash() {
  let id = location.hash.slice(1);
  try {
    id = decodeURIComponent(id);
  } catch {
    return;
  }
  const target = id && at(id);
  if (target && id !== "outline") arrive(target);
}

window.addEventListener("hashchange", arriveAtHash);
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.getAttribute("href") === location.hash && !link.matches(".ctx")) arriveAtHash();
});

// --- a quote in its comment ----------------------------------------------------------------------

/** The whole comment, the quoted words marked. Offsets count characters, not the units of
 * JavaScript's strings. */
function contextOf(link) {
  const comment = at(link.getAttribute("href").slice(1));
  if (!comment) return null;
  const [start, end] = link.dataset.at.split("-").map(Number);
  const text = first(".text", comment);
  const letters = [...text.textContent];
  const piece = (from, to) => letters.slice(from, to).join("");
  const box = make("div", { className: "context", dir: "auto", lang: text.lang });
  box.append(piece(0, start), make("mark", {}, piece(start, end)), piece(end));
  const videos = all(".video", comment).map((video) => video.cloneNode(true));
  const notes = [...traitsOf(comment), ...videos];
  const parts = notes.flatMap((note, i) => (i ? [" · ", note] : [note]));
  if (notes.length) box.append(make("small", {}, ...parts));
  return box;
}

function traitsOf(comment) {
  const codes = (comment.dataset.f ?? "").split(".");
  const written = (trait, code) => `${trait.name}: ${trait.values[code]}`;
  return data.traits.flatMap((trait, i) => (codes[i] ? [written(trait, codes[i])] : []));
}

function toggleContext(link) {
  const item = link.closest("li");
  const shown = first(":scope > .context", item);
  if (shown) shown.remove();
  else item.append(contextOf(link));
  const said = first(":scope > .said", item);
  if (said) said.hidden = shown ? "until-found" : false;
  link.setAttribute("aria-expanded", String(!shown));
}

/** What a quote alone was taken to say is for those who look into it, and for the browser's own
 * search. */
document.addEventListener("toggle", (event) => {
  if (!event.target.open) return;
  for (const said of all("li:not(:has(.context)) > .said", event.target)) {
    said.hidden = "until-found";
  }
}, { capture: true });

document.addEventListener("click", (event) => {
  const link = event.target.closest(".ctx");
  if (!link || event.metaKey || event.ctrlKey || !at(link.getAttribute("href").slice(1))) return;
  event.preventDefault();
  toggleContext(link);
});

// --- citations: a look at the claim before going there -------------------------------------------

const preview = at("preview");
const touch = matchMedia("(hover: none)");
let previewed = null;

function lookAt(chip) {
  const claim = at(chip.getAttribute("href").slice(1));
  if (!claim) return;
  const quote = first("blockquote", claim);
  const people = first(".tally .side", claim).textContent;
  const speaker = quote && first("bdi", quote.parentElement).textContent;
  preview.replaceChildren(
    make("b", { dir: "auto" }, first(".statement", claim).textContent),
    quote ? make("q", { dir: "auto" }, quote.textContent) : "",
    make("small", {}, [speaker, people].filter(Boolean).join(" · ")),
  );
  preview.hidden = false;
  previewed = chip;
  chip.setAttribute("aria-describedby", "preview");
}

function place(chip) {
  const spot = chip.getBoundingClientRect();
  const box = preview.getBoundingClientRect();
  const left = Math.min(Math.max(spot.left - 20, 12), innerWidth - box.width - 12);
  const below = spot.bottom + 8 + box.height < innerHeight;
  preview.style.left = `${left + scrollX}px`;
  preview.style.top = `${(below ? spot.bottom + 8 : spot.top - box.height - 8) + scrollY}px`;
}

function lookAway() {
  preview.hidden = true;
  preview.classList.remove("sheet");
  previewed?.removeAttribute("aria-describedby");
  previewed = null;
}

function hover(event) {
  const chip = event.target.closest?.(".chip");
  if (!chip || touch.matches || chip === previewed) return;
  lookAway();
  lookAt(chip);
  place(chip);
}

function leave(event) {
  const inside = (node) => node && (previewed?.contains(node) || preview.contains(node));
  const leaves = inside(event.target) && !inside(event.relatedTarget);
  if (previewed && !touch.matches && leaves) lookAway();
}

document.addEventListener("pointerover", hover);
document.addEventListener("pointerout", leave);
document.addEventListener("focusin", hover);
document.addEventListener("focusout", leave);
document.addEventListener("click", (event) => {
  const chip = event.target.closest(".chip");
  if (!chip || !touch.matches) {
    if (!preview.contains(event.target) || event.target.closest("a")) lookAway();
    return;
  }
  event.preventDefault();
  lookAt(chip);
  preview.classList.add("sheet");
  const link = make("a", { href: chip.hash, className: "plain" }, say("open_claim"));
  preview.append(make("p", { className: "buttons" }, link));
});

// --- open and close everything -------------------------------------------------------------------

function toggleAll() {
  const boxes = all(".subtopic, .more");
  const open = boxes.some((box) => !box.open);
  for (const box of boxes) box.open = open;
}

// --- the map: which comment is this dot ----------------------------------------------------------

const mapSpots = all(".map-dots path").flatMap((path, cloud) =>
  [...path.getAttribute("d").matchAll(/M([\d.]+) ([\d.]+)/g)].map(([, x, y], i) => ({
    x: x / 1000,
    y: y / 1000,
    comment: data.map[cloud][i],
  })),
);

function nearestSpot(event) {
  const box = first(".map").getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const far = (spot) => (spot.x * box.width - x) ** 2 + (spot.y * box.height - y) ** 2;
  const best = mapSpots.reduce((a, b) => (far(b) < far(a) ? b : a), mapSpots[0]);
  return best && far(best) < 200 ? at(best.comment) : null;
}

first(".map")?.addEventListener("pointermove", (event) => {
  const comment = nearestSpot(event);
  if (!comment) return lookAway();
  preview.replaceChildren(
    make("q", { dir: "auto" }, first(".text", comment).textContent.slice(0, 280)),
    make("small", {}, first("bdi", comment).textContent),
  );
  preview.hidden = false;
  place({ getBoundingClientRect: () => new DOMRect(event.clientX, event.clientY, 0, 0) });
});
first(".map")?.addEventListener("pointerleave", lookAway);
first(".map")?.addEventListener("click", (event) => {
  const comment = nearestSpot(event);
  if (comment) location.hash = comment.id;
});

// --- all quotes: search and filters --------------------------------------------------------------

const PER_PAGE = 50;
const form = first(".filters");
const listing = { list: [], page: 1 };

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase();

/** Every quote in the page with what it can be found by. Made when first needed. */
function quotes() {
  quotes.list ??= all(".quotes > li").map((item) => {
    const claim = item.closest(".claim");
    const link = first(".ctx", item);
    const statement = first(".statement", claim);
    const text = (first("blockquote", item) ?? statement).firstChild.data.trim();
    const speaker = first("bdi", item).textContent;
    const comment = at(link.getAttribute("href").slice(1));
    return {
      id: item.id,
      text,
      speaker,
      claim,
      statement: statement.firstChild.data.trim(),
      row: link.textContent.match(/\d+/)?.[0] ?? "",
      comment: comment?.id ?? "",
      subtopic: claim.closest(".subtopic"),
      topic: claim.closest(".topic"),
      codes: (comment?.dataset.f ?? "").split("."),
      searched: plain(`${text} ${statement.firstChild.data} ${speaker}`),
    };
  });
  return quotes.list;
}

const wanted = () => Object.fromEntries([...new FormData(form)].filter(([, value]) => value));

const wordsOf = (text) => plain(text).split(/\s+/).filter(Boolean);

function matches(want) {
  const words = wordsOf(want.q ?? "");
  const speaker = plain(want.speaker ?? "");
  const groups = Object.entries(want).filter(([name]) => /^f\d+$/.test(name));
  return (quote) =>
    (!want.topic || quote.topic.id === want.topic) &&
    (!want.subtopic || quote.subtopic.id === want.subtopic) &&
    (!speaker || plain(quote.speaker).includes(speaker)) &&
    groups.every(([name, value]) => quote.codes[name.slice(1)] === value) &&
    words.every((word) => quote.searched.includes(word));
}

/** The text with the words that were searched for marked, whatever their accents: letter stands for
 * letter. */
function lit(text, words) {
  const letters = [...text];
  const folded = letters.map((letter) => plain(letter)[0] ?? "\0").join("");
  const on = letters.map(() => false);
  for (const word of words)
    for (let i = folded.indexOf(word); i >= 0; i = folded.indexOf(word, i + 1)) {
      on.fill(true, i, i + word.length);
    }
  const pieces = [];
  letters.forEach((letter, i) => {
    if (i && on[i] === on[i - 1]) pieces.at(-1).text += letter;
    else pieces.push({ text: letter, on: on[i] });
  });
  return pieces.map((piece) => (piece.on ? make("mark", {}, piece.text) : piece.text));
}

function resultOf(quote, words) {
  const link = (href, text) => make("a", { href: `#${href}`, dir: "auto" }, text);
  return make(
    "li",
    {},
    make("blockquote", { dir: "auto", lang: quote.claim.lang }, ...lit(quote.text, words)),
    make(
      "p",
      { className: "from" },
      make("bdi", {}, ...lit(quote.speaker, words)),
      link(quote.subtopic.id, `${nameOf(quote.topic)} › ${nameOf(quote.subtopic)}`),
      link(quote.claim.id, say("claim", { n: Number(first(".no", quote.claim).textContent) })),
      link(quote.id, say("permalink")),
    ),
  );
}

const nameOf = (box) => first("h3, h4", box).firstChild.data.trim();

function showResults() {
  const words = wordsOf(form.elements.q.value);
  const pages = Math.max(1, Math.ceil(listing.list.length / PER_PAGE));
  listing.page = Math.min(Math.max(listing.page, 1), pages);
  const part = listing.list.slice((listing.page - 1) * PER_PAGE, listing.page * PER_PAGE);
  at("results").replaceChildren(...part.map((quote) => resultOf(quote, words)));
  const [n, total] = [listing.list.length, quotes().length];
  const some = n === total ? say("found", { n }) : say("found_of", { n, all: total });
  at("found").textContent = n === 0 ? say("none") : some;
  at("page").textContent = say("page", { n: listing.page, all: pages });
  first(".pager").hidden = pages < 2;
  first('[data-do="previous"]').disabled = listing.page === 1;
  first('[data-do="next"]').disabled = listing.page === pages;
  first('[data-do="reset"]').hidden = !Object.keys(wanted()).length;
}

function search({ step = false, page = 1 } = {}) {
  const want = wanted();
  for (const option of form.elements.subtopic.options) {
    const { topic } = option.dataset;
    option.hidden = Boolean(want.topic && topic && topic !== want.topic);
  }
  listing.list = quotes().filter(matches(want));
  listing.page = page;
  showResults();
  const named = [...form.elements].filter((element) => element.name);
  const blank = Object.fromEntries(named.map((element) => [element.name, ""]));
  address({ ...blank, ...want, page: listing.page > 1 ? String(listing.page) : "" }, step);
}

function turn(by) {
  listing.page += by;
  showResults();
  address({ page: listing.page > 1 ? String(listing.page) : "" });
  at("quotes").scrollIntoView();
}

/** Cells that a spreadsheet would take for formulas get an apostrophe, as in the files beside this
 * page. */
function cell(value) {
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function saveCsv() {
  const head = ["quote_id", "claim_id", "row", "speaker", "text", "topic", "subtopic", "claim"];
  const rows = listing.list.map((quote) => [
    quote.id, quote.claim.id, quote.row, quote.speaker, quote.text,
    nameOf(quote.topic), nameOf(quote.subtopic), quote.statement,
  ]);
  const text = [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
  const file = new Blob(["\ufeff", text], { type: "text/csv" });
  const link = make("a", { href: URL.createObjectURL(file), download: "quotes-found.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function startExplorer() {
  if (startExplorer.done) return;
  startExplorer.done = true;
  const speakers = [...new Set(quotes().map((quote) => quote.speaker))];
  speakers.sort((a, b) => a.localeCompare(b, locale));
  at("speakers").append(...speakers.slice(0, 3000).map((value) => make("option", { value })));
  follow((params) => {
    for (const field of form.elements) if (field.name) field.value = params.get(field.name) ?? "";
    search({ page: Number(params.get("page")) || 1 });
  });
}

if (form) {
  // Before the list below is made anew: a subtopic of another topic is no longer wanted.
  form.elements.topic.addEventListener("input", () => (form.elements.subtopic.value = ""));
  form.addEventListener("input", (event) => search({ step: event.target.matches("select") }));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("focusin", startExplorer);
  new IntersectionObserver((seen) => {
    if (seen.some((entry) => entry.isIntersecting)) startExplorer();
  }, { rootMargin: "1200px" }).observe(form);
}

// --- the matrix ----------------------------------------------------------------------------------

const matrix = first(".grid tbody");
const asMade = matrix ? [...matrix.rows] : [];
const weight = { agree: 0, unclear: 1, disagree: 2, "": 3 };

function sortMatrix(order) {
  if (!matrix) return;
  const positions = (row) => all(".agree, .disagree", row).length;
  const column = Number(order);
  const rows = [...asMade];
  const weigh = (row) => weight[row.cells[column].className];
  const nameOf = (row) => row.cells[0].textContent;
  if (column) rows.sort((a, b) => weigh(a) - weigh(b));
  else if (order === "positions") rows.sort((a, b) => positions(b) - positions(a));
  else if (order === "name") rows.sort((a, b) => nameOf(a).localeCompare(nameOf(b), locale));
  matrix.append(...rows);
  for (const button of all("[data-column]")) {
    button.setAttribute("aria-pressed", String(button.dataset.column === order));
  }
}

first(".grid")?.addEventListener("pointerover", (event) => {
  const { cellIndex } = event.target.closest("td, th") ?? {};
  const isLit = (i) => i === cellIndex && i > 0;
  all(".grid thead th").forEach((head, i) => head.classList.toggle("lit", isLit(i)));
});
first(".grid thead")?.addEventListener("click", (event) => {
  const column = event.target.closest("[data-column]")?.dataset.column;
  if (column) sortMatrix(column);
});

// --- where the reader is -------------------------------------------------------------------------

const entries = new Map(all(".outline a").map((link) => [at(link.hash.slice(1)), link]));
const inView = new Set();
const spy = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) inView[isIntersecting ? "add" : "delete"](target);
  const here = [...entries.keys()].filter((section) => inView.has(section)).at(-1);
  for (const [section, link] of entries) {
    if (section === here) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-20% 0px -70% 0px" });
for (const section of entries.keys()) if (section) spy.observe(section);

// --- printing ------------------------------------------------------------------------------------

/** Closed boxes print as they are; those that belong to the chosen depth are opened, and closed
 * again after. */
function openForPrint() {
  const depth = root.dataset.print ?? "summary";
  const kinds = { summary: ".as-table", topics: ".subtopic, .as-table", everything: "details" };
  openForPrint.opened = all(kinds[depth]).filter((box) => !box.open);
  for (const box of openForPrint.opened) box.open = true;
}

window.addEventListener("beforeprint", openForPrint);
window.addEventListener("afterprint", () => {
  for (const box of openForPrint.opened ?? []) box.open = false;
});
at("printing").addEventListener("close", (event) => {
  if (event.target.returnValue !== "print") return;
  root.dataset.print = first("input:checked", event.target).value;
  setTimeout(() => window.print());
});

// --- tools and keys ------------------------------------------------------------------------------

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    const box = make("textarea", { value: location.href });
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
  toast(say("copied"));
}

function goSearch() {
  if (!form) return;
  startExplorer();
  at("quotes").scrollIntoView();
  at("search").focus({ preventScroll: true });
}

const tools = {
  search: goSearch,
  expand: toggleAll,
  theme: nextTheme,
  print: () => at("printing").showModal(),
  link: copyLink,
  help: () => at("help").showModal(),
  reset: () => {
    form.reset();
    for (const field of form.elements) if (field.name) field.value = "";
    search({ step: true });
  },
  csv: saveCsv,
  previous: () => turn(-1),
  next: () => turn(1),
};

document.addEventListener("click", (event) => {
  tools[event.target.closest("[data-do]")?.dataset.do]?.();
});

/** j and k walk through topics, open subtopics and their claims. */
function walk(by) {
  const stops = all(".topic > h3, .subtopic > summary, .subtopic[open] .claim, .crux");
  const here = stops.indexOf(first(".cursor"));
  const top = (stop) => stop.getBoundingClientRect().top;
  const below = () => stops.findIndex((stop) => top(stop) > 60);
  const above = () => stops.findLastIndex((stop) => top(stop) < 40);
  const nearest = by > 0 ? below : above;
  const next = here >= 0 ? here + by : nearest();
  const stop = stops[Math.min(Math.max(next, 0), stops.length - 1)];
  if (!stop) return;
  first(".cursor")?.classList.remove("cursor");
  stop.classList.add("cursor");
  arrive(stop);
  stop.scrollIntoView({ block: "center" });
}

function openHere() {
  const here = first(".cursor") ?? document.activeElement;
  const statement = here?.closest(".claim, .crux");
  const box = statement ? first("details", statement) : here?.closest("details");
  const target = box ?? first(".subtopic", here?.closest(".topic") ?? root);
  if (target) target.open = !target.open;
}

const keys = {
  "/": goSearch, j: () => walk(1), k: () => walk(-1), o: openHere, e: toggleAll, "?": tools.help,
};
const single = at("single-keys");
single.checked = stored("holdfast-keys") !== "off";
single.addEventListener("change", () => stored("holdfast-keys", single.checked ? "on" : "off"));

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") lookAway();
  const typing = event.target.matches("input:not([type=radio], [type=checkbox]), select, textarea");
  const held = event.ctrlKey || event.metaKey || event.altKey;
  if (!single.checked || typing || held || first("dialog[open]")) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// Once the page stands: go where the address points.
all("[data-state]").forEach(startSwitch);
if ([...query().keys()].some((name) => form?.elements[name])) startExplorer();
if (location.hash) arriveAtHash();
root.dataset.ready = "yes";
