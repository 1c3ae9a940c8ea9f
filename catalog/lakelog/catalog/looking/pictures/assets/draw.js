// Drawings, by hand: lanes of changes, bars over time, and how files lie along their key.
const COLOURS = ["#3b82c4", "#c2571a", "#2f9e5f", "#9a5cc6", "#b8860b", "#c43d6f", "#1f9aa8", "#7a7f87", "#a05a2c", "#5c6bc0"];
const LANE_PX = matchMedia("(max-width: 40rem)").matches ? 10 : 14, ROW_PX = 28, LANES_MAX = 12;

const columnOf = (lane) => Math.min(lanes[lane] ? lanes[lane].column || 0 : 0, LANES_MAX - 1);
const colour = (column) => COLOURS[column % COLOURS.length];
const laneColumns = lanes.reduce((most, _, lane) => Math.max(most, columnOf(lane) + 1), 1);

// Between which changes each lane is drawn: rows come with the newest first.
const spans = lanes.map((lane) => {
  const last = changes.length - 1;
  const at = (version) => {
    const found = changes.findIndex((change) => change.version <= version);
    return found < 0 ? last : found;
  };
  if (!isTable) return [0, last];
  return [lane.ended ? at(lane.ended) : 0, lane.begun ? at(lane.begun) : last];
});

function connected(change) {
  if (change.kind !== "commit") return null;
  if (change.joins !== null) return columnOf(change.joins);
  const lane = lanes[change.lane];
  return lane && lane.begun === change.version && lane.of !== null && lane.of !== undefined ? columnOf(lane.of) : null;
}

function lanePicture(change) {
  const x = (column) => column * LANE_PX + 9, middle = ROW_PX / 2;
  const drawing = svg("svg", { width: laneColumns * LANE_PX + 6, height: ROW_PX, "aria-hidden": "true", focusable: "false" });
  lanes.forEach((lane, number) => {
    const [newest, oldest] = spans[number];
    if (change.at < newest || change.at > oldest) return;
    const column = columnOf(number);
    const faint = isTable ? 1 : 0.3;
    drawing.append(svg("line", {
      x1: x(column), x2: x(column), y1: change.at === newest && lane.ended ? middle : 0, y2: change.at === oldest ? middle : "100%",
      stroke: colour(column), "stroke-width": 2, opacity: faint,
    }));
  });
  const own = columnOf(change.lane), other = connected(change);
  if (other !== null && other !== own) {
    drawing.append(svg("path", {
      d: `M ${x(own)} ${middle} Q ${x(other)} ${middle} ${x(other)} ${ROW_PX}`, fill: "none", stroke: colour(own), "stroke-width": 2,
    }));
  }
  for (const [next, edge] of [[changes[change.at - 1], 0], [changes[change.at + 1], "100%"]]) {
    if (!next || change.transaction === null || next.transaction !== change.transaction) continue;
    const between = (x(own) + x(columnOf(next.lane))) / 2;
    drawing.append(svg("line", { class: "together", x1: x(own), y1: middle, x2: between, y2: edge }));
  }
  drawing.append(mark(change, x(own), middle, colour(own)));
  return drawing;
}

function mark(change, x, y, fill) {
  if (change.kind === "damage") return svg("path", { d: `M ${x - 5} ${y - 5} L ${x + 5} ${y + 5} M ${x + 5} ${y - 5} L ${x - 5} ${y + 5}`, stroke: "#d33", "stroke-width": 3 });
  if (change.kind === "aborted") return svg("circle", { cx: x, cy: y, r: 4, fill: "none", stroke: fill, "stroke-width": 2 });
  if (change.kind !== "commit") return svg("rect", { x: x - 6, y: y - 1.5, width: 12, height: 3, fill });
  if (change.transaction) return svg("rect", { x: x - 5, y: y - 5, width: 10, height: 10, fill });
  if (change.base !== null) return svg("path", { d: `M ${x} ${y - 6} L ${x + 6} ${y} L ${x} ${y + 6} L ${x - 6} ${y} Z`, fill });
  return svg("circle", { cx: x, cy: y, r: 5, fill });
}

// Bars of how much happened when; `among` are changes, `weight` what counts.
function activity(among, label, weight, height) {
  const timed = among.filter((change) => change.time_us !== null);
  const high = height || 70, wide = 900, most = 120;
  if (!timed.length) return el("p", { class: "soft" }, "Nothing with a time.");
  const all = changes.filter((change) => change.time_us !== null);
  const last = all.reduce((a, change) => Math.max(a, change.time_us), 0);
  const first = all.reduce((a, change) => Math.min(a, change.time_us), last);
  const step = Math.max(1, (last - first) / most);
  const sums = new Array(most).fill(0);
  for (const change of timed) sums[Math.min(most - 1, Math.floor((change.time_us - first) / step))] += weight(change);
  const top = Math.max(...sums, 1);
  const drawing = svg("svg", { class: "chart", height: high, viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}, from ${time(first)} to ${time(last)}; at most ${count(top)} in one of ${most} parts of that time` });
  sums.forEach((sum, at) => {
    if (!sum) return;
    const tall = Math.max(2, (sum / top) * high);
    drawing.append(svg("rect", { class: "bar", x: (at * wide) / most, y: high - tall, width: wide / most - 1, height: tall },
      svg("title", {}, `${time(first + at * step)}: ${count(sum)}`)));
  });
  return el("div", { class: "drawn" }, drawing, ends(time(first), time(last)));
}

const ends = (from, to) => el("p", { class: "ends soft", "aria-hidden": "true" }, el("span", {}, from), el("span", {}, to));

function bars(label, rows) {
  const top = Math.max(...rows.map((row) => row.value), 1);
  return el("div", { class: "bars", role: "img", "aria-label": `${label}: ${rows.map((row) => `${row.name}: ${row.text}`).join("; ")}` }, rows.map((row) => el("div", { class: "measure" },
    el("span", { class: "text" }, row.name),
    svg("svg", { height: 14, "aria-hidden": "true" }, svg("rect", { class: row.hot ? "hot" : "bar", width: `${Math.max(0.3, (row.value / top) * 100)}%`, height: 14 })),
    el("span", { class: "soft" }, row.text))));
}

// Each file from its least value of the key to its greatest, in the order of values: what overlaps is read together.
function keyPicture(files, key, overlap) {
  const placed = files.filter((file) => file.first !== undefined && file.last !== undefined);
  placed.sort((one, other) => one.first - other.first || one.last - other.last);
  const wide = 900, line = Math.max(1.5, Math.min(12, 260 / Math.max(1, placed.length)));
  const high = Math.max(1, placed.length * line);
  const drawing = svg("svg", { class: "chart", height: high, viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": `Where the values of ${key} lie in ${count(placed.length)} files; on average, a value may be in ${overlap} of them` });
  placed.forEach((file, at) => {
    const x = (file.first / 1000) * wide;
    drawing.append(svg("rect", { class: file.deleted_rows ? "hot" : "bar", x, y: at * line, width: Math.max(2, ((file.last - file.first) / 1000) * wide), height: Math.max(1, line - 0.7) },
      svg("title", {}, `${file.path}: ${file.low} to ${file.high}`)));
  });
  if (!placed.length) return drawing;
  const greatest = placed.reduce((a, b) => (a.last >= b.last ? a : b));
  return el("div", { class: "drawn" }, drawing, ends(placed[0].low, greatest.high));
}
