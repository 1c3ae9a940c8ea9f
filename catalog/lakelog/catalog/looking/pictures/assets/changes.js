// The time line: what happened, with search, filters, and the commit of each version.
const PAGE = 200;
const namesAt = new Map();
if (isTable) {
  for (const ref of refs) {
    const lane = lanes.findIndex((each) => each.name === ref.name && !each.ended);
    const newest = ref.kind === "branch" && lane >= 0 ? changes.find((change) => change.lane === lane && change.kind === "commit") : null;
    const version = newest ? newest.version : ref.version;
    namesAt.set(version, [...(namesAt.get(version) || []), ref]);
  }
}

function searchText(change) {
  if (change.search === undefined) {
    const writer = change.writer === null ? {} : writers[change.writer] || {};
    change.search = [
      change.text, change.operation, versions(change), time(change.time_us), logOf(change).name, change.commit_id, change.statement,
      change.query, ...["user", "engine", "client", "application", "host"].map((name) => writer[name]),
    ].filter(Boolean).join("\n").toLowerCase();
  }
  return change.search;
}

function changesPanel() {
  let shown = PAGE, found = changes, chosen = null;
  const list = el("ol", { class: "list", id: "changes", "aria-label": "Changes, the newest first" });
  const said = el("p", { class: "soft", role: "status", id: "found" });
  const more = el("button", { type: "button", id: "more" });
  const detail = el("section", { class: "detail", id: "detail", "aria-label": "The chosen change", "aria-live": "polite", tabindex: "-1" },
    el("p", { class: "soft" }, "Choose a change to see its commit. Arrow keys go from one to the next."));
  const text = el("input", { type: "search", id: "search", placeholder: "text, user, version, id" });
  const operations = choice("operation", changes.flatMap((change) => (change.operation ? change.operation.split(", ") : [])));
  const users = choice("user", changes.map(who));
  const lines = isTable ? choice("branch", lanes.length > 1 ? changes.map((change) => (lanes[change.lane] || {}).name) : [])
    : choice("log", changes.map((change) => logOf(change).name));
  const rebased = el("input", { type: "checkbox", id: "rebased" }), together = el("input", { type: "checkbox", id: "together" });
  const chart = el("div", {}), split = el("div", { class: "split" }, el("div", {}, laneNames(), list, more), detail);
  const narrow = matchMedia("(max-width: 60rem)");

  function choice(name, values) {
    const counts = new Map();
    for (const value of values) if (value) counts.set(value, (counts.get(value) || 0) + 1);
    const options = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 500);
    const select = el("select", { id: name }, el("option", { value: "" }, "all"),
      options.map(([value, number]) => el("option", { value }, `${value} (${count(number)})`)));
    select.addEventListener("change", filter);
    return select;
  }

  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = changes.filter((change) =>
      words.every((word) => searchText(change).includes(word))
      && (!operations.value || change.operation.split(", ").includes(operations.value))
      && (!users.value || who(change) === users.value)
      && (!lines.value || (isTable ? (lanes[change.lane] || {}).name : logOf(change).name) === lines.value)
      && (!rebased.checked || change.base !== null)
      && (!together.checked || change.transaction !== null));
    shown = PAGE;
    draw();
  }

  function draw() {
    split.append(detail);
    replaced(list, found.slice(0, shown).map(row));
    const total = found.reduce((sum, change) => sum + change.count, 0);
    said.textContent = `${plural(total, "change")}${found.length < changes.length ? ` of ${count(changes.length)} rows` : ""}`;
    more.hidden = found.length <= shown;
    more.textContent = `Show more (${count(found.length - shown)} left)`;
    replaced(chart, activity(found, "Changes over time", (change) => change.count));
    if (chosen !== null) pressed(chosen);
  }

  function row(change) {
    const tags = (namesAt.get(change.version) || []).filter(() => isTable && change.kind === "commit");
    const label = [tags.map((ref) => el("b", { class: "tag" }, ref.kind === "tag" ? `tag ${ref.name}` : ref.name)),
      isTable ? null : el("b", {}, `${logOf(change).name} `), change.text || change.kind,
      change.base !== null ? el("i", { class: "soft" }, ` · rebased from ${change.base}`) : null,
      change.transaction ? el("i", { class: "soft" }, ` · transaction of ${plural(change.transaction_logs, "log")}`) : null];
    const button = el("button", { type: "button", class: `row ${change.kind === "damage" ? "damage" : ""}`, "data-at": change.at, "aria-pressed": "false" },
      lanePicture(change), el("span", { class: "number" }, versions(change)), el("span", { class: "soft moment" }, time(change.time_us)),
      el("span", { class: "said" }, label), el("span", { class: "soft who" }, who(change)));
    return el("li", {}, button);
  }

  function pressed(at) {
    for (const button of list.querySelectorAll(".row")) button.setAttribute("aria-pressed", String(Number(button.dataset.at) === at));
    // Beside the list if there is room, else below its row.
    const row = narrow.matches ? list.querySelector(`[data-at="${at}"]`) : null;
    (row ? row.parentElement : split).append(detail);
  }

  function choose(at) {
    chosen = at;
    kept.chosen = identity(changes[at]);
    pressed(at);
    replaced(detail, changeDetail(changes[at], goTo));
  }

  function goTo(change) {
    let place = found.indexOf(change);
    if (place < 0) {
      text.value = operations.value = users.value = lines.value = "";
      rebased.checked = together.checked = false;
      filter();
      place = found.indexOf(change);
    }
    if (place >= shown) { shown = place + PAGE; draw(); }
    choose(change.at);
    const button = list.querySelector(`[data-at="${change.at}"]`);
    if (button) button.focus();
  }

  list.addEventListener("click", (event) => {
    const button = event.target.closest(".row");
    if (button) choose(Number(button.dataset.at));
  });
  list.addEventListener("keydown", (event) => {
    const rows = [...list.querySelectorAll(".row")], at = rows.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + 20, PageUp: at - 20 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    const target = rows[Math.max(0, Math.min(rows.length - 1, next))];
    target.focus();
    choose(Number(target.dataset.at));
  });
  more.addEventListener("click", () => {
    const from = shown;
    shown += PAGE;
    list.append(...found.slice(from, shown).map(row));
    more.hidden = found.length <= shown;
    more.textContent = `Show more (${count(found.length - shown)} left)`;
    const first = list.querySelectorAll(".row")[from];
    if (first) first.focus();
  });
  let waiting = 0;
  text.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  rebased.addEventListener("change", filter);
  together.addEventListener("change", filter);
  narrow.addEventListener("change", () => { if (chosen !== null) pressed(chosen); });
  draw();
  const again = kept.chosen ? changes.find((change) => identity(change) === kept.chosen) : null;
  if (again) choose(again.at);
  const filters = el("form", { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } },
    el("label", { class: "wide" }, "Search", text), el("label", {}, "Operation", operations), el("label", {}, "Who", users),
    el("label", {}, isTable ? "Branch" : "Table or namespace", lines), el("label", { class: "check" }, rebased, "rebased only"),
    el("label", { class: "check" }, together, "transactions only"));
  return [chart, filters, said, split];
}

const identity = (change) => [logOf(change).name, change.version, change.commit_id].join("\n");

function laneNames() {
  if (lanes.length < 2) return null;
  return el("p", { class: "soft" }, lanes.slice(0, 40).map((lane, number) => {
    const swatch = svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, svg("circle", { cx: 6, cy: 6, r: 5, fill: colour(columnOf(number)) }));
    return el("span", { class: "text" }, swatch, `\u00a0${lane.name}${lane.ended ? ` (until ${lane.ended})` : ""}   `);
  }));
}

const userOf = (change) => (change.writer === null ? "" : writers[change.writer].user || writers[change.writer].engine || "");

// The commands that undo this change and those after it, or only those after it.
function wayBack(change) {
  if (!isTable || change.kind !== "commit" || change.lane) return null;
  const newest = changes.reduce((most, each) => Math.max(most, each.version), 0);
  const table = /^[\w.\/:-]+$/.test(data.name) ? data.name : `'${data.name.replaceAll("'", "'\\''")}'`;
  const ways = [["As it was before this change", change.version - 1], ["As this change left it", change.version]].filter(([, version]) => version > 0 && version < newest);
  if (!ways.length) return null;
  return [el("h2", {}, "Restore the table"), ways.map(([words, version]) => [el("p", { class: "soft" }, words), el("pre", {}, el("code", {}, `lakelog restore ${table} ${version}`))])];
}

function changeDetail(change, goTo) {
  const writer = change.writer === null ? null : writers[change.writer];
  const facts = [
    isTable ? null : [logOf(change).kind, logOf(change).name],
    ["time", exactTime(change.time_us)], ["did", change.text], ["operation", change.operation],
    ["branch", change.lane && isTable ? (lanes[change.lane] || {}).name : null],
    ["user", writer && writer.user], ["engine", writer && writer.engine], ["client", writer && writer.client],
    ["application", writer && writer.application], ["host", writer && writer.host],
    ["query", change.query], ["statement", change.statement],
    ["added", change.added_files ? `${plural(change.added_rows, "row")} in ${plural(change.added_files, "file")}, ${size(change.added_bytes)}` : null],
    ["removed", change.removed_files ? `${plural(change.removed_rows, "row")} in ${plural(change.removed_files, "file")}, ${size(change.removed_bytes)}` : null],
    ["deleted", change.deleted_rows ? plural(change.deleted_rows, "row") : null],
    ["commit", change.commit_id],
  ].filter((fact) => fact && fact[1]);
  const title = change.kind === "commit" ? `Version ${change.version}` : versions(change) ? `Versions ${versions(change)}` : "Changes";
  return [
    el("h2", {}, title),
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    change.base === null ? null : rebase(change, goTo),
    change.transaction === null ? null : transaction(change, goTo),
    definitionChange(change),
    wayBack(change),
  ].flat(3);
}

// Only a log has this: what a commit was prepared on, beside what it was committed as.
function rebase(change, goTo) {
  const between = changes.filter((each) => each.log === change.log && each.version > change.base && each.version < change.version);
  return [
    el("h2", {}, "Rebased"),
    el("p", {}, `It was prepared on version ${change.base} and committed as version ${change.version}, over what others had committed meanwhile:`),
    el("ul", {}, between.slice(0, 50).map((each) => el("li", {}, el("button", { type: "button", on: { click: () => goTo(each) } }, `${each.version}`), ` ${each.text}`))),
    between.length > 50 ? el("p", { class: "soft" }, `and ${count(between.length - 50)} more`) : null,
  ];
}

function transaction(change, goTo) {
  const others = changes.filter((each) => each.transaction === change.transaction && each !== change);
  return [
    el("h2", {}, "Transaction"),
    el("p", {}, `It happened together with changes of ${plural(Math.max(0, change.transaction_logs - 1), "other log")}.`),
    others.length ? el("ul", {}, others.slice(0, 50).map((each) => el("li", {}, el("button", { type: "button", on: { click: () => goTo(each) } }, `${logOf(each).name} ${each.version}`), ` ${each.text}`)))
      : el("p", { class: "soft" }, "The others are not in this picture: that of the namespace above has them."),
  ];
}
