// The picture's lists, and what each script asks of them.
const changes = changesOf(data.changes);
const logs = data.logs || [], writers = data.writers || [], lanes = data.lanes || [], refs = data.refs || [];
const definitions = data.definitions || [], dropped = data.dropped || [], health = data.health || [];
const isTable = data.kind === "table";

const logOf = (change) => logs[change.log] || { name: "(not shown)", kind: "" };

function who(change) {
  const writer = change.writer === null ? null : writers[change.writer];
  return writer ? [writer.user, writer.engine].filter(Boolean).join(" ") || writer.host || "" : "";
}

function versions(change) {
  if (!change.version) return "";
  return change.first_version && change.first_version !== change.version ? `${change.first_version}–${change.version}` : `${change.version}`;
}
