// The other views: writers, what the table is and was, its files, health, and a warehouse's tables.
function writersPanel() {
  const rows = writers.map((writer, at) => ({ at, ...writer, changes: writer.changes || 0 })).sort((a, b) => b.changes - a.changes);
  const name = (row) => [row.user, row.engine, row.client, row.application, row.host].filter(Boolean).join(" · ");
  const charts = rows.slice(0, 8).map((row) => [el("h2", {}, name(row)), activity(changes.filter((change) => change.writer === row.at), `Changes by ${name(row)}`, (change) => change.count, 36)]);
  return [
    el("h2", {}, "Who wrote, when and how much"),
    sortable(`${plural(rows.length, "writer")} of what this page shows`, [
      ["Writer", name, name], ["Changes", (row) => count(row.changes), (row) => row.changes, true],
      ["Rows added", (row) => count(row.added_rows), (row) => row.added_rows || 0, true],
      ["Bytes added", (row) => size(row.added_bytes), (row) => row.added_bytes || 0, true],
      ["First", (row) => time(row.first_us), (row) => row.first_us || 0], ["Last", (row) => time(row.last_us), (row) => row.last_us || 0],
    ], rows),
    charts,
  ].flat(2);
}

// What the table was at a version: the newest definition that is not later.
function definitionAt(version) {
  let found = null;
  for (const each of definitions) if (each.version <= version) found = each;
  return found;
}

function differences(before, after) {
  const found = [];
  const say = (kind, what, name, from, to) => found.push({ kind, what, name, from, to });
  const old = new Map(before.columns.map((column) => [column.id, column])), now = new Map(after.columns.map((column) => [column.id, column]));
  for (const column of after.columns) {
    const was = old.get(column.id);
    if (!was) { say("added", "column", column.name, "", columnText(column)); continue; }
    if (was.name !== column.name) say("changed", "column", column.name, `named ${was.name}`, `named ${column.name}`);
    for (const [name, text] of [["type", (each) => each.type], ["nullable", (each) => (each.nullable === false ? "NOT NULL" : "may be NULL")],
      ["comment", (each) => each.comment || ""], ["default", (each) => each.default || ""]]) {
      if (text(was) !== text(column)) say("changed", `column's ${name}`, column.name, text(was), text(column));
    }
  }
  for (const column of before.columns) if (!now.has(column.id)) say("removed", "column", column.name, columnText(column), "");
  const order = (columns, others) => columns.filter((column) => others.has(column.id)).map((column) => column.id).join();
  if (order(before.columns, now) !== order(after.columns, old)) {
    say("changed", "order of columns", "", before.columns.map((column) => column.name).join(", "), after.columns.map((column) => column.name).join(", "));
  }
  const [had, has] = [before.properties || {}, after.properties || {}];
  for (const name of [...new Set([...Object.keys(had), ...Object.keys(has)])].sort()) {
    if (!Object.hasOwn(had, name)) say("added", "property", name, "", has[name]);
    else if (!Object.hasOwn(has, name)) say("removed", "property", name, had[name], "");
    else if (had[name] !== has[name]) say("changed", "property", name, had[name], has[name]);
  }
  for (const [name, what] of [["partitioning", "partitioning"], ["sorting", "sort order"], ["clustering", "clustering"], ["constraints", "constraints"]]) {
    const [one, other] = [(before[name] || []).join("; "), (after[name] || []).join("; ")];
    if (one !== other) say(!one ? "added" : !other ? "removed" : "changed", what, "", one, other);
  }
  for (const name of ["comment", "provider"]) {
    const [one, other] = [before[name] || "", after[name] || ""];
    if (one !== other) say(!one ? "added" : !other ? "removed" : "changed", name, "", one, other);
  }
  return found;
}

const columnText = (column) => `${column.type}${column.nullable === false ? " NOT NULL" : ""}${column.default ? ` DEFAULT ${column.default}` : ""}${column.comment ? ` -- ${column.comment}` : ""}`;

function differenceTable(found, from, to) {
  if (!found.length) return el("p", { id: "differences" }, `Nothing of its definition differs between version ${from} and version ${to}.`);
  const signs = { added: "+", removed: "−", changed: "~" };
  const cell = (label, text) => el("td", { class: "text", "data-label": label }, text);
  return el("div", { class: "table" }, el("table", { id: "differences", class: "cards" }, el("caption", { class: "soft" }, `From version ${from} to version ${to}`),
    el("thead", {}, el("tr", {}, ["", "What", "Name", "Before", "After"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, found.map((each) => el("tr", {}, el("td", { class: each.kind }, el("span", { class: "sign" }, signs[each.kind]), ` ${each.kind}`),
      cell("What", each.what), cell("Name", each.name), cell("Before", each.from), cell("After", each.to))))));
}

function definitionChange(change) {
  if (change.kind !== "commit" || !isTable) return null;
  const at = definitions.findIndex((each) => each.version === change.version);
  if (at < 1) return null;
  return [el("h2", {}, "Definition"), differenceTable(differences(definitions[at - 1], definitions[at]), definitions[at - 1].version, change.version)];
}

function definitionPanel() {
  const newest = changes.reduce((most, change) => Math.max(most, change.version), 0);
  const oldest = definitions.length ? definitions[0].version : newest;
  const start = definitions.length > 1 ? definitions[definitions.length - 2].version : oldest;
  const from = el("input", { type: "number", id: "from", min: oldest, max: newest, value: start, list: "versions" });
  const to = el("input", { type: "number", id: "to", min: oldest, max: newest, value: newest, list: "versions" });
  const place = el("div", { "aria-live": "polite" }), whole = el("div", {});
  function draw() {
    const [before, after] = [definitionAt(Number(from.value)), definitionAt(Number(to.value))];
    if (!before || !after) { replaced(place, el("p", {}, `What the table was is known from version ${oldest} on.`)); return; }
    replaced(place, differenceTable(differences(before, after), from.value, to.value));
    const rest = [["partitioned by", after.partitioning], ["sorted by", after.sorting], ["clustered by", after.clustering], ["constraints", after.constraints],
      ["comment", after.comment && [after.comment]], ["provider", after.provider && [after.provider]]].filter(([, value]) => value && value.length);
    replaced(whole, el("h2", {}, `The table at version ${to.value}`),
      sortable(plural(after.columns.length, "column"), [["Column", (row) => row.name, (row) => row.name], ["Type", (row) => row.type, (row) => row.type],
        ["", (row) => (row.nullable === false ? "NOT NULL" : "")], ["Default", (row) => row.default || ""], ["Comment", (row) => row.comment || ""],
        ["Id", (row) => row.id, (row) => row.id, true]], after.columns),
      el("dl", {}, rest.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value.join("; "))])),
      sortable("Properties", [["Property", (row) => row[0], (row) => row[0]], ["Value", (row) => row[1], (row) => row[1]]], Object.entries(after.properties || {})));
  }
  from.addEventListener("input", draw);
  to.addEventListener("input", draw);
  draw();
  return [
    el("h2", {}, "Compare two versions"),
    el("div", { class: "filters" }, el("label", {}, "From version", from), el("label", {}, "to version", to),
      el("datalist", { id: "versions" }, definitions.map((each) => el("option", { value: each.version })))),
    place, whole,
  ];
}

function filesPanel() {
  const layout = data.layout;
  if (!layout) return [el("p", {}, "The files are not known: the log cannot be read.")];
  const total = (layout.rows || 0) + (layout.deleted_rows || 0);
  const sizes = (layout.sizes || []).map((each) => ({
    name: each.below_bytes > 2 ** 40 ? "larger" : `below ${size(each.below_bytes)}`, value: each.files, text: `${plural(each.files, "file")}, ${size(each.size_bytes)}`, hot: each.below_bytes <= layout.target_bytes / 8,
  }));
  const parts = layout.partitions || [], files = layout.files || [];
  return [
    el("p", {}, `${plural(layout.file_count, "file")} with ${plural(layout.rows, "row")}, ${size(layout.size_bytes)}. `
      + (layout.deleted_rows ? `${plural(layout.deleted_rows, "row")} more (${((layout.deleted_rows / total) * 100).toFixed(1)} %) are deleted and still in their files. ` : "No deleted rows. ")
      + `Writers begin a new file at ${size(layout.target_bytes)}.`),
    sizes.length ? [el("h2", {}, "By size"), bars("Files by size", sizes)] : null,
    layout.key ? [el("h2", {}, `Along ${layout.key}`), el("p", { class: "soft" }, `On average, a value of ${layout.key} may be in ${layout.overlap} of the files that ${layout.key} is known of (1: no two overlap).`), keyPicture(files, layout.key, layout.overlap)] : null,
    parts.length ? [el("h2", {}, "By partition"), sortable(plural(parts.reduce((sum, part) => sum + (part.count || 1), 0), "partition"), [
      ["Partition", (row) => row.values, (row) => row.values], ["Size", (row) => size(row.size_bytes), (row) => row.size_bytes, true],
      ["Rows", (row) => count(row.rows), (row) => row.rows, true], ["Deleted rows", (row) => count(row.deleted_rows), (row) => row.deleted_rows || 0, true],
      ["Files", (row) => count(row.files), (row) => row.files, true], ["of them small", (row) => count(row.small_files), (row) => row.small_files || 0, true]], parts, 100)] : null,
    files.length ? [el("h2", {}, "Files"), sortable(files.length < layout.file_count ? `${count(files.length)} of ${plural(layout.file_count, "file")}: the largest, those with most deleted rows, and some along the key` : plural(files.length, "file"), [
      ["File", (row) => el("span", { class: "mono" }, row.path), (row) => row.path], ["Size", (row) => size(row.size_bytes), (row) => row.size_bytes, true],
      ["Rows", (row) => count(row.rows), (row) => row.rows, true], ["Deleted rows", (row) => count(row.deleted_rows), (row) => row.deleted_rows || 0, true],
      ["Partition", (row) => row.partition || "", (row) => row.partition || ""]], files, 100)] : null,
  ].flat(2);
}

function healthPanel() {
  const words = { good: "Good", could: "Could be better", should: "Should be done", damage: "Damage" };
  return [
    el("p", { class: "soft" }, "From metadata alone. Commands need --warehouse, or the variable LAKELOG_WAREHOUSE; lakelog fsck checks the objects themselves."),
    health.map((each) => el("section", { class: "advice" }, el("p", {}, el("span", { class: `level ${each.level}` }, words[each.level]), " ", el("span", { class: "text" }, each.what)),
      each.command ? el("pre", {}, el("code", {}, each.command)) : null, each.sql ? el("pre", {}, el("code", {}, each.sql)) : null)),
  ].flat();
}

function tablesPanel() {
  const ofTable = (row, text) => (row.kind === "table" ? text : null);
  const search = el("input", { type: "search", id: "tables" }), place = el("div", {});
  const tables = logs.filter((log) => log.kind === "table" && !log.dropped);
  const newest = new Map();
  for (const change of changes) if (!newest.has(change.log)) newest.set(change.log, change);
  const lastUser = (row) => {
    const change = newest.get(logs.indexOf(row));
    return change && change.version === row.version ? userOf(change) : "";
  };
  const busiest = tables.slice().sort((a, b) => (b.changes || 0) - (a.changes || 0)).slice(0, 12);
  const largest = tables.slice().sort((a, b) => (b.size_bytes || 0) - (a.size_bytes || 0)).slice(0, 12);
  function draw() {
    const words = search.value.toLowerCase();
    const rows = logs.filter((log) => log.name.toLowerCase().includes(words));
    replaced(place, sortable(plural(rows.length, "log"), [
      ["Name", (row) => el(row.page ? "a" : "span", { href: row.page, class: row.problem ? "damage text" : "text" }, row.name, row.dropped ? " (dropped)" : "", row.problem ? ` — ${row.problem}` : ""), (row) => row.name],
      ["Kind", (row) => row.kind, (row) => row.kind], ["Size", (row) => ofTable(row, size(row.size_bytes)), (row) => row.size_bytes || 0, true],
      ["Rows", (row) => ofTable(row, count(row.rows)), (row) => row.rows || 0, true], ["Files", (row) => ofTable(row, count(row.files)), (row) => row.files || 0, true],
      ["Versions", (row) => count(row.version), (row) => row.version || 0, true], ["Changes here", (row) => count(row.changes), (row) => row.changes || 0, true],
      ["Last", (row) => time(row.time_us), (row) => row.time_us || 0], ["By", lastUser, lastUser]], rows));
  }
  search.addEventListener("input", draw);
  draw();
  const line = (log, value, text) => ({ name: log.name, value, text });
  return [
    tables.length ? [el("h2", {}, "Largest tables"), bars("Largest tables", largest.map((log) => line(log, log.size_bytes || 0, `${size(log.size_bytes)}, ${plural(log.rows || 0, "row")}`)))] : null,
    tables.length ? [el("h2", {}, "Busiest tables"), bars("Busiest tables", busiest.map((log) => line(log, log.changes || 0, `${plural(log.changes || 0, "change")} here, version ${count(log.version)}`)))] : null,
    el("h2", {}, "All"), el("div", { class: "filters" }, el("label", { class: "wide" }, "Search", search)), place,
  ].flat();
}

function droppedPanel() {
  if (!dropped.length) return [el("p", {}, "Nothing was dropped that can be restored.")];
  return [sortable(`${plural(dropped.length, "thing")} that can be restored`, [["Name", (row) => row.name, (row) => row.name], ["Kind", (row) => row.kind, (row) => row.kind],
    ["Dropped", (row) => time(row.dropped_us), (row) => row.dropped_us], ["By", (row) => row.user || "", (row) => row.user || ""],
    ["Kept until", (row) => time(row.kept_until_us), (row) => row.kept_until_us], ["Restore", (row) => el("code", {}, row.command)]], dropped)];
}
