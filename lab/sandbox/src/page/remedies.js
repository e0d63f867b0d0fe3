"use strict";
/* The part of the page on Remedies: those that exist, and the form of a new one with its plan. The script of the page loads after this
   one; it calls `showRemedies` with every state, and has what all parts of the page use. */

/** The shape and the label of each state of a Remedy. */
const REMEDY_PHASES = {
  absent: ["none", "Does not exist"], "no-status": ["none", "No status yet"], idle: ["ok", "Not active"], active: ["blocked", "Active"],
  "observe-only": ["eye", "Observe-only"], expired: ["clock", "Expired"], "not-accepted": ["bad", "Not accepted"],
};
/** The shape of each kind of change of a cluster. */
const CHANGES = { set: "blocked", cleared: "ok", "over-bound": "warn", observed: "eye" };
/** A time that names its distance from UTC, as the annotation must. */
const MOMENT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/;

/** Returns the time that is left in its two largest units, the last of them begun. */
function countdown(ms) {
  const seconds = Math.ceil(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
}

const clockTime = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
const form = document.getElementById("new-remedy");
const opener = document.getElementById("open-new-remedy");

function showRemedies() {
  list(byId("remedies"), "remedy-row", state.remedies, ({ name }) => name, showRemedy);
  showChoices();
  planAgainIfTheFleetChanged();
}

// ---- Those that exist ----

function showRemedy(row, { name, rule, reason, phase, conditions, acting, refused, expires_ms }) {
  const [shape, label] = REMEDY_PHASES[phase] ?? ["none", phase];
  mark(slot(row, "pill"), shape);
  say(slot(row, "phase"), label);
  say(slot(row, "name"), name);
  say(slot(row, "rule"), rule);
  slot(row, "reason").hidden = !reason;
  say(slot(row, "reason"), reason ? `Reason: ${reason}` : "");
  const chips = [...acting.map((cluster) => ["blocked", cluster]), ...refused.map((cluster) => ["warn", `${cluster}, kept by the bound`])];
  slot(row, "clusters").hidden = chips.length === 0;
  list(slot(row, "clusters"), "chip", chips, ([, text]) => text, (chip, [chipShape, text]) => {
    mark(chip, chipShape);
    say(slot(chip, "text"), text);
  });
  // That it is accepted goes without saying.
  const telling = conditions.filter(({ type, reason }) => reason !== type);
  list(slot(row, "conditions"), "remedy-condition", telling, ({ type }) => type, (line, { type, status, since_ms, reason, message }) => {
    say(slot(line, "status"), `${type} ${status}`);
    say(slot(line, "detail"), `${since(since_ms)} · ${reason}${message ? `: ${message}` : ""}`);
  });
  showEnd(row, phase, expires_ms);
  const toggle = slot(row, "toggle");
  const isAbsent = phase === "absent";
  Object.assign(toggle.dataset, { do: isAbsent ? "create-sample" : "delete-remedy", remedy: name });
  say(toggle, isAbsent ? "Create" : "Delete");
  toggle.setAttribute("aria-label", `${toggle.textContent} the Remedy ${name}`);
}

function showEnd(row, phase, end) {
  const left = end - state.now_ms;
  slot(row, "end").hidden = phase === "absent";
  slot(row, "end").classList.toggle("muted", !end || left <= 0);
  say(slot(row, "left"), !end ? "No end" : left > 0 ? `Ends in ${countdown(left)}` : `Ended ${age(-left)} ago`);
  say(slot(row, "at"), end ? `at ${clockTime(end)}` : "");
}

// ---- A new one ----

function openForm(isOpen) {
  if (!state) return;
  if (isOpen) {
    form.reset();
    const isTaken = (name) => state.remedies.some((remedy) => remedy.name === name);
    let nth = 1;
    while (isTaken(`remedy-${nth}`)) nth += 1;
    form.elements.name.value = `remedy-${nth}`;
  }
  form.hidden = !isOpen;
  opener.setAttribute("aria-expanded", String(isOpen));
  (isOpen ? form.elements.name : opener).focus();
  if (isOpen) describe();
}

/** Returns the Remedy that the form describes. What is left open is absent: an empty list of clusters would mean none of them. */
function described() {
  const fields = new FormData(form);
  const clusters = fields.getAll("cluster");
  return {
    name: fields.get("name").trim(), acts: fields.get("acts"),
    clusters: clusters.length ? clusters : undefined,
    expires_at: fields.get("expires_at").trim() || undefined,
    reason: fields.get("reason").trim() || undefined,
    observe_only: fields.has("observe_only"),
  };
}

function showChoices() {
  const names = state.clusters.filter(({ deleted }) => !deleted).map(({ name }) => name);
  list(byId("choices"), "cluster-choice", names, (name) => name, (choice, name) => {
    choice.querySelector("input").value = name;
    say(slot(choice, "name"), name);
  });
  showHints();
}

/** Says what follows from the fields that can be left empty. */
function showHints() {
  const { clusters, expires_at } = described();
  say(byId("scope"), clusters ? "Only these, whichever join later." : "None ticked: every cluster, also one that joins later.");
  const end = MOMENT.test(expires_at ?? "") ? Date.parse(expires_at) : NaN;
  const left = end - state.now_ms;
  say(byId("until"), !expires_at ? "Empty: until you delete it." : left > 0 ? `${clockTime(end)} on your clock, in ${countdown(left)}.` : "");
}

/** Shows what follows from the fields as they are now. */
function describe() {
  showHints();
  showPlan();
}

// ---- The plan ----

let asked = 0;
let planned = "";

async function showPlan() {
  asked += 1;
  const turn = asked;
  const { response, problem } = await send("plans", described());
  const plan = response ? await response.json() : { refused: problem };
  // Only the newest description counts, whichever answer comes last.
  if (turn === asked && !form.hidden) tell(plan);
}

/** Asks again when what a plan depends on has changed. */
function planAgainIfTheFleetChanged() {
  if (form.hidden) return;
  const fleet = JSON.stringify([
    state.ingresses, state.remedies.map(({ name, phase }) => [name, phase]),
    state.clusters.map(({ name, deleted, actions, conditions }) => [name, deleted, actions, conditions.map(({ type, status }) => [type, status])]),
  ]);
  if (fleet !== planned && planned) showPlan();
  planned = fleet;
}

function tell({ refused, accepted }) {
  const { clusters = [], backends = [], warnings = [] } = accepted ?? {};
  const isCutOff = backends.some(({ cut_off }) => cut_off);
  const rows = [
    ...(refused ? [["bad", "", refused]] : []),
    ...clusters.map(({ cluster, kind, text }) => [CHANGES[kind] ?? "none", cluster, text]),
    ...backends.map((backend) => [backend.cut_off ? "bad" : "none", `Service ${backend.service} of ${backend.ingress}`, difference(backend)]),
    ...warnings.map((warning) => ["warn", "", warning]),
  ];
  if (accepted && !clusters.length) rows.unshift(["none", "", "No cluster gets or loses an action now."]);
  else if (accepted && !backends.length) rows.push(["none", "", "No backend of an ingress gets or loses a cluster."]);
  list(byId("plan"), "plan-row", rows, (row) => row.join(" "), (row, [shape, name, text]) => {
    mark(row, shape);
    row.classList.toggle("alarming", shape === "bad");
    say(slot(row, "name"), name);
    say(slot(row, "text"), text);
  });
  say(byId("create"), isCutOff ? "Create all the same" : "Create");
}

function difference({ lost, gained, left, cut_off }) {
  const parts = [lost.length && `loses ${lost.join(", ")}`, gained.length && `gains ${gained.join(", ")}`].filter(Boolean);
  const rest = cut_off ? "no cluster is left, so its requests fail" : `left: ${left.join(", ") || "none"}`;
  return [...parts, rest].join("; ");
}

// ---- What a reader does ----

opener.addEventListener("click", () => openForm(form.hidden));
document.getElementById("close-new-remedy").addEventListener("click", () => openForm(false));
form.addEventListener("keydown", ({ key }) => key === "Escape" && openForm(false));
form.addEventListener("input", describe);
for (const button of form.querySelectorAll("[data-seconds]")) {
  button.addEventListener("click", () => {
    const seconds = Number(button.dataset.seconds);
    const end = new Date(state.now_ms + seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
    form.elements.expires_at.value = seconds ? end : "";
    describe();
  });
}
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = byId("create");
  if (button.ariaBusy === "true") return;
  button.ariaBusy = "true";
  const { problem } = await send("actions", { do: "create-remedy", ...described() });
  button.ariaBusy = "false";
  if (problem) tell({ refused: problem });
  else openForm(false);
});
