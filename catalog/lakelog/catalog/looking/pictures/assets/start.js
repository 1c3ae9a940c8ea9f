// How the page is written: text goes into text nodes only, never into markup. It must not know the picture.

function el(name, attributes, ...children) {
  const made = document.createElement(name);
  return filled(made, attributes, children);
}

function svg(name, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, does] of Object.entries(value)) made.addEventListener(event, does);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    if (child instanceof Node || !WRAPPED.has(made.localName)) made.append(child);
    else made.append(...parted(String(child)));
  }
  return made;
}

// Long names may wrap behind their dots, slashes, underscores and hyphens, and nowhere else.
const WRAPPED = new Set(["a", "b", "button", "caption", "code", "dd", "dt", "figcaption", "h1", "h2", "li", "p", "span", "td", "th"]);
const BREAK = document.createElement("wbr");

function parted(text) {
  if (!/\S{13}/.test(text)) return [text];
  return text.split(/(\S{13,})/).flatMap((part, at) => (at % 2 ? part.split(/([._/\\-]+)/).flatMap((piece, place) => (place % 2 ? [piece, BREAK.cloneNode()] : [piece])) : [part]));
}

function replaced(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return place;
}

const count = (number) => Number(number || 0).toLocaleString("en-US");

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = Number(bytes || 0), unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

function time(us) {
  if (us === null || us === undefined) return "";
  const moment = new Date(us / 1000);
  return Number.isNaN(moment.getTime()) ? `${us} µs since 1970` : moment.toISOString().slice(0, 19).replace("T", " ") + "Z";
}

// To the microsecond, so that it can be copied as the time to read as of.
function exactTime(us) {
  const text = time(us);
  return text.endsWith("Z") ? `${text.slice(0, -1)}.${String(((us % 1e6) + 1e6) % 1e6).padStart(6, "0")}Z` : text;
}

const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

// Changes come as columns: see `columns` in page.py.
const DEFAULTS = {
  kind: "commit", log: 0, version: 0, first_version: null, time_us: null, operation: "", text: "", writer: null, lane: 0,
  joins: null, base: null, commit_id: null, transaction: null, transaction_logs: 0, query: null, statement: null,
  added_rows: 0, added_files: 0, added_bytes: 0, removed_rows: 0, removed_files: 0, removed_bytes: 0, deleted_rows: 0, count: 1,
};

function changesOf(columns) {
  const found = Array.from({ length: columns.length }, (_, at) => ({ at, ...DEFAULTS }));
  for (const [name, column] of Object.entries(columns)) {
    if (name === "length") continue;
    if (column.steps) {
      let before = 0;
      column.steps.forEach((step, at) => {
        if (step !== null) before += step;
        found[at][name] = step === null ? null : before;
      });
    } else if (column.of) {
      column.at.forEach((place, at) => { found[at][name] = column.of[place]; });
    } else {
      column.values.forEach((value, at) => { found[at][name] = value; });
    }
  }
  return found;
}

// A table with headings that sort; `columns` are [heading, cell, value to sort by or null, is a number].
function sortable(caption, columns, rows, most) {
  const body = el("tbody");
  const more = el("button", { type: "button" }, "");
  let shown = most || 200, order = rows.slice(), by = null, down = true;
  const heads = columns.map(([heading, , value, isNumber], at) => {
    const inside = value ? el("button", { type: "button", on: { click: () => sort(at) } }, heading) : heading;
    return el("th", { scope: "col", class: isNumber ? "number" : null }, inside);
  });
  function sort(at) {
    down = by === at ? !down : Boolean(columns[at][3]);
    by = at;
    const key = columns[at][2];
    order = rows.slice().sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
    });
    heads.forEach((head, place) => {
      if (place === at) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    draw();
  }
  function draw() {
    replaced(body, order.slice(0, shown).map((row) =>
      el("tr", {}, columns.map(([heading, cell, , isNumber]) => el("td", { class: isNumber ? "number" : null, "data-label": heading }, cell(row))))));
    more.hidden = order.length <= shown;
    more.textContent = `Show more (${count(order.length - shown)} left)`;
  }
  more.addEventListener("click", () => { shown += 500; draw(); });
  draw();
  const table = el("table", { class: "cards" }, el("caption", { class: "soft" }, caption), el("thead", {}, el("tr", {}, heads)), body);
  return el("div", { class: "table" }, table, more);
}
