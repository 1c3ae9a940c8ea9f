// A page that its server refreshes: it asks for versions, draws the picture again when one comes, and runs queries.
// What was typed, opened and chosen stays. All requests are relative to the page, whose address has the token.
async function answered(path, parameters, how) {
  const response = await fetch(`${path}?${new URLSearchParams(parameters)}`, { cache: "no-store", ...how });
  if (response.status === 304) return { state: null, answer: null };
  const answer = await response.json();
  if (!response.ok) throw new Error((answer.error || {}).message || `the server answered ${response.status}`);
  return { state: response.headers.get("ETag"), answer };
}

// Panels that last while the picture is drawn again.
const lasting = { sql: null, rows: null, refreshRows: null };

function liveViews(data, isTable) {
  const sql = ["sql", "SQL", () => (lasting.sql = lasting.sql || sqlPanel(data.live))];
  return isTable ? [["rows", "Rows", () => (lasting.rows = lasting.rows || rowsPanel(data.live))], sql] : [sql];
}

function cellsTable(answer) {
  const headings = answer.columns.map(([name, type, isNumber]) => el("th", { scope: "col", class: isNumber ? "number" : null }, name, el("span", { class: "soft type" }, type)));
  const row = (cells) => el("tr", {}, cells.map((text, at) => el("td", { class: answer.columns[at][2] ? "number" : text && text.length > 60 ? "long" : null }, text === null ? el("i", { class: "soft" }, "NULL") : text)));
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Rows" }, el("table", { class: "values" }, el("thead", {}, el("tr", {}, headings)), el("tbody", {}, answer.rows.map(row))));
}

function rowsPanel(live) {
  const place = el("div", {});
  async function refresh() {
    try {
      const { answer } = await answered("rows", { name: live.name });
      replaced(place, el("p", { class: "soft", role: "status" }, answer.rows.length ? `${plural(answer.rows.length, "row")} of ${answer.read}; which rows come first is not promised` : `No rows in ${answer.read}`), cellsTable(answer));
    } catch (error) {
      replaced(place, el("p", { class: "note damage", role: "alert" }, error.message));
    }
  }
  lasting.refreshRows = refresh;
  refresh();
  return place;
}

function sqlPanel(live) {
  const text = el("textarea", { id: "query", rows: "5", spellcheck: "false", autocapitalize: "off", autocomplete: "off", placeholder: "SELECT count(*) FROM shop.orders" });
  text.value = live.sql;
  const run = el("button", { type: "submit" }, "Run"), cancel = el("button", { type: "button", disabled: true }, "Cancel");
  const status = el("p", { class: "soft", role: "status", id: "answered" }, "Reads the newest versions, with DuckDB’s SQL. Ctrl+Enter runs it."), place = el("div", { id: "answer" });
  let running = null;
  async function ask() {
    if (running) return;
    running = crypto.getRandomValues(new Uint32Array(4)).join("-");
    run.disabled = true;
    cancel.disabled = false;
    status.className = "soft";
    status.textContent = "Running …";
    const began = performance.now();
    try {
      const { answer } = await answered("query", { sql: text.value, id: running });
      replaced(place, cellsTable(answer));
      status.textContent = `${plural(answer.rows.length, "row")}${answer.more ? " shown, and there are more" : ""} in ${((performance.now() - began) / 1000).toFixed(1)} s${answer.read ? `; read ${answer.read}` : ""}`;
    } catch (error) {
      place.replaceChildren();
      status.className = "note damage";
      status.textContent = error instanceof TypeError ? "The server cannot be reached: it may have ended." : error.message;
    }
    running = null;
    run.disabled = false;
    cancel.disabled = true;
  }
  cancel.addEventListener("click", () => { answered("query", { id: running }, { method: "DELETE" }).catch(() => {}); });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
  });
  return el("div", {}, el("form", { class: "query", on: { submit: (event) => { event.preventDefault(); ask(); } } },
    el("label", { for: "query", class: "soft" }, "Query"), text, el("div", { class: "buttons" }, run, cancel)), status, place);
}

function follow(drawPicture, first) {
  const kept = {};
  let live = first.live, drawn = drawPicture(first, kept);

  function fieldsOf(name) {
    return [...drawn.panelOf(name).querySelectorAll("input[id], select[id]")];
  }

  function redraw(data) {
    const focused = document.activeElement, at = [scrollX, scrollY], carets = "selectionStart" in focused && focused.type !== "number" ? [focused.selectionStart, focused.selectionEnd] : null;
    const names = [...drawn.made.keys()], fields = new Map();
    for (const field of names.flatMap(fieldsOf)) {
      const typed = field.type === "checkbox" ? field.checked : field.localName === "select" ? field.value : field.value !== field.defaultValue;
      if (typed) fields.set(field.id, field.value);
    }
    drawn = drawPicture(data, kept);
    for (const field of names.filter((name) => name !== "sql" && name !== "rows").flatMap(fieldsOf)) {
      if (!fields.has(field.id)) continue;
      if (field.type === "checkbox") field.checked = true;
      else field.value = fields.get(field.id);
      field.dispatchEvent(new Event(field.type === "checkbox" || field.localName === "select" ? "change" : "input"));
    }
    if (lasting.refreshRows) lasting.refreshRows();
    const again = focused.isConnected ? focused : focused.id ? document.getElementById(focused.id) : focused.dataset.at ? document.querySelector('.row[aria-pressed="true"]') : null;
    if (again && again !== document.activeElement) {
      again.focus({ preventScroll: true });
      if (carets && again.setSelectionRange) again.setSelectionRange(...carets);
    }
    scrollTo({ left: at[0], top: at[1], behavior: "instant" });
  }

  function say(text) {
    const place = document.getElementById("live");
    if (place && place.textContent !== text) place.textContent = text;
  }

  async function poll() {
    let wait = live.poll_s;
    try {
      if (!document.hidden) {
        const { state } = await answered("versions", { name: live.name }, { headers: { "If-None-Match": `"${live.state}"` } });
        if (state !== null) {
          const began = performance.now();
          const { answer } = await answered("data", { name: live.name });
          live = answer.live;
          redraw(answer);
          // A picture that is slow to make is not made all the time.
          wait = Math.max(live.poll_s, (performance.now() - began) / 200);
        }
        say("live");
      }
    } catch (error) {
      wait = Math.max(5, wait);
      say(error instanceof TypeError ? "not live: the server cannot be reached" : `not live: ${error.message}`);
    }
    setTimeout(poll, wait * 1000);
  }
  setTimeout(poll, live.poll_s * 1000);
}
