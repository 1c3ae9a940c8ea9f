// The frame of the page: its head, its tabs, and which view is open.
function head() {
  const now = isTable ? logs[0] || {} : logs.filter((log) => log.kind === "table" && !log.dropped).reduce(
    (sum, log) => ({ tables: sum.tables + 1, rows: sum.rows + (log.rows || 0), files: sum.files + (log.files || 0), size_bytes: sum.size_bytes + (log.size_bytes || 0) }),
    { tables: 0, rows: 0, files: 0, size_bytes: 0 });
  const last = isTable ? changes.find((change) => change.kind === "commit" && change.version === now.version) : null;
  const facts = [
    isTable ? ["version", count(now.version)] : ["tables", count(now.tables)], ["rows", count(now.rows)], ["files", count(now.files)], ["size", size(now.size_bytes)],
    refs.length > 1 ? ["tags and branches", count(refs.length - 1)] : null, last ? [`last change${userOf(last) ? `, by ${userOf(last)}` : ""}`, time(last.time_us)] : null, ["as of", time(data.made_us)],
  ].filter(Boolean);
  const theme = el("button", { type: "button", id: "theme", on: { click: () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
  } } }, "Light or dark");
  const above = (data.above || []).flatMap(([name, page], at) => [at ? " › " : null, el("a", { href: page }, name)]);
  replaced(document.getElementById("head"), theme, above.length ? el("nav", { class: "text", "aria-label": "Above" }, above) : null, el("h1", {}, data.name),
    el("p", { class: "soft text" }, `${data.kind} · ${data.location} · drawn by lakelog ${data.lakelog}`, data.live ? [" · ", el("span", { id: "live" }, "live")] : null),
    el("ul", { class: "facts" }, facts.map(([name, value]) => el("li", {}, el("b", {}, value), name))),
    (data.left_out || []).map((text) => el("p", { class: "note" }, text)),
    logs.filter((log) => isTable && log.problem).map((log) => el("p", { class: "note damage" }, log.problem)));
}

const worst = health.some((each) => each.level === "damage") ? " (damage)" : health.filter((each) => each.level !== "good").length ? ` (${health.filter((each) => each.level !== "good").length})` : "";
const views = isTable
  ? [["changes", "Changes", changesPanel], ["writers", "Writers", writersPanel], ["definition", "Columns and properties", definitionPanel], ["files", "Files", filesPanel], ["health", `Health${worst}`, healthPanel]]
  : [["tables", "Tables", tablesPanel], ["changes", "Changes", changesPanel], ["writers", "Writers", writersPanel], ["health", `Health${worst}`, healthPanel], ["dropped", `Dropped (${count(dropped.length)})`, droppedPanel]];

if (data.live) views.splice(isTable ? 0 : 1, 0, ...liveViews(data, isTable));

const main = document.getElementById("main"), tabs = document.getElementById("tabs"), made = new Map();

function panelOf(name) {
  const [, , panel] = views.find(([each]) => each === name);
  if (!made.has(name)) made.set(name, el("section", { id: `view-${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}` }, panel()));
  return made.get(name);
}

function open(name, focus) {
  kept.view = name;
  const panel = panelOf(name);
  if (main.firstElementChild !== panel) replaced(main, panel);
  for (const tab of tabs.children) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen && focus) tab.focus();
    // By hand: scrollIntoView would scroll a notebook around the page, too.
    if (chosen) tabs.scrollLeft = Math.min(tab.offsetLeft, Math.max(tabs.scrollLeft, tab.offsetLeft + tab.offsetWidth - tabs.clientWidth));
  }
}

head();
replaced(tabs, views.map(([name, title]) => el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "main", on: { click: () => open(name, false) } }, title)));
tabs.onkeydown = (event) => {
  const at = [...tabs.children].indexOf(document.activeElement);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: views.length - 1 }[event.key];
  if (at < 0 || next === undefined) return;
  event.preventDefault();
  open(views[(next + views.length) % views.length][0], true);
};
open(kept.view || views[0][0], false);
return { made, panelOf };
