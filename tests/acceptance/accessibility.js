// Looks at a page as somebody does who can't see it well, or at all. Returns what is wrong, in words.
() => {
  const wrong = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const short = (node) => node.outerHTML.slice(0, 120);
  const seen = (node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });

  // Names: whatever can be focused says what it is.
  const name = (node) =>
    (node.getAttribute("aria-label") ?? "") +
    (node.textContent ?? "") +
    [...(node.labels ?? [])].map((label) => label.textContent).join("") +
    (document.getElementById(node.getAttribute("aria-labelledby"))?.textContent ?? "");
  const focusable = "a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'])";
  for (const node of all(focusable)) if (!name(node).trim()) wrong.push(`no name: ${short(node)}`);
  for (const node of all("input, select, textarea"))
    if (!node.labels.length && !node.getAttribute("aria-label")) wrong.push(`no label: ${short(node)}`);

  // Hidden from readers means out of reach for the keyboard too.
  for (const node of all("[aria-hidden='true'] a[href], [aria-hidden='true'] button"))
    if (node.tabIndex >= 0) wrong.push(`focus in hidden part: ${short(node)}`);

  // Ids, references, roles, landmarks, language.
  const ids = all("[id]").map((node) => node.id);
  for (const id of ids.filter((id, at) => ids.indexOf(id) !== at).slice(0, 5)) wrong.push(`id twice: ${id}`);
  for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls"])
    for (const node of all(`[${attribute}]`))
      if (!document.getElementById(node.getAttribute(attribute))) wrong.push(`dangling ${attribute}: ${short(node)}`);
  const roles = new Set(["toolbar", "region", "status", "search", "tooltip", "img", "dialog"]);
  for (const node of all("[role]")) if (!roles.has(node.getAttribute("role"))) wrong.push(`odd role: ${short(node)}`);
  if (all("main").length !== 1) wrong.push("not exactly one main");
  for (const nav of all("nav")) if (!nav.getAttribute("aria-label")) wrong.push(`nav without a name: ${short(nav)}`);
  if (!document.documentElement.lang) wrong.push("no language");

  // Headings: one first, none skipped.
  const levels = all("main h1, main h2, main h3, main h4").map((node) => Number(node.tagName[1]));
  if (levels[0] !== 1 || levels.filter((level) => level === 1).length !== 1) wrong.push("not exactly one h1, first");
  levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) wrong.push(`heading ${at} skips to h${level}`); });

  // Lists and tables are what they say.
  for (const list of all("ul, ol"))
    for (const child of list.children) if (child.tagName !== "LI") wrong.push(`in a list: ${short(child)}`);
  for (const table of all("table")) if (!table.querySelector("th[scope]")) wrong.push(`table without heads: ${short(table)}`);

  // Contrast: text against what is really behind it.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const behind = (node) => {
    const layers = [];
    for (let box = node; box; box = box.parentElement) {
      const layer = rgba(getComputedStyle(box).backgroundColor);
      if (layer[3]) layers.unshift(layer);
      if (layer[3] === 1) break;
    }
    return layers.reduce((under, layer) => over(layer, under), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = new Set();
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || node.closest("svg, script, style, .unseen, option, :disabled") || !seen(node)) continue;
    const ground = behind(node);
    const found = ratio(over(rgba(getComputedStyle(node).color), ground), ground);
    const key = `${node.tagName}.${node.className}`;
    if (found < 4.5 && !told.has(key)) {
      told.add(key);
      wrong.push(`contrast ${found.toFixed(2)}: ${short(node)}`);
    }
  }
  return wrong;
}
