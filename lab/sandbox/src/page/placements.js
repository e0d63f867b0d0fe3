"use strict";
/* The part of the page on placements: the fleet of the hub, and where each placement stands in it. The script of the page loads after
   this one; it calls `showPlacements` with every state, and has what all parts of the page use. */

/** The shape and the label of each state of a placement. */
const PLACEMENT_PHASES = { "rolling-out": ["warn", "Rolling out"], available: ["ok", "Available"], stuck: ["bad", "Stuck"] };
/** The same of each state of a placement in a cluster. */
const PLACED_PHASES = {
  "not-picked": ["none", "Not picked"], waiting: ["clock", "Waits for its turn"], "rolling-out": ["warn", "Rolling out"],
  available: ["ok", "Available"], stuck: ["bad", "Stuck"], removing: ["none", "Is being removed"],
};
/** The shape and the words for a cluster by its place in the fleet. */
const MEMBERSHIPS = {
  joining: ["clock", "is joining the fleet"], joined: ["ok", "in the fleet"], leaving: ["clock", "is leaving the fleet"],
  left: ["none", "has left the fleet, and keeps what it has"],
};

/** Returns `true` if a placement cannot go on as it is. */
const isStuck = ({ phase }) => phase === "stuck";

function showPlacements({ wanted, clusters, placements }) {
  const part = byId("placed");
  say(slot(part, "wanted"), wanted ? `The hub’s Deployment web of namespace store wants version ${wanted}` : "The hub has no Deployment web of namespace store");
  slot(part, "roll-out").classList.toggle("wanted", placements.some(isStuck));
  list(byId("fleet"), "fleet-row", clusters, ({ name }) => name, showFleetCluster);
  list(byId("placements"), "placement-row", placements, ({ name }) => name, showPlacement);
}

function showFleetCluster(row, { name, membership, cordoned, sick, runs, starts, requests_per_second, errors_per_second }) {
  row.dataset.cluster = name;
  const [shape, words] = MEMBERSHIPS[membership] ?? ["none", membership];
  mark(row, cordoned || sick ? "warn" : shape);
  say(slot(row, "name"), name);
  say(slot(row, "membership"), cordoned ? "cordoned: gets nothing new" : sick ? "its DNS is dead: gets nothing new" : words);
  const starting = starts ? `, ${starts} is not ready` : "";
  const errors = errors_per_second ? `, ${errors_per_second} errors/s` : "";
  say(slot(row, "runs"), `Store: ${runs ? `runs ${runs}` : "runs none"}${starting} · ${requests_per_second} requests/s${errors}`);
  const isOut = membership === "left";
  const cordon = slot(row, "cordon");
  cordon.hidden = isOut;
  cordon.dataset.do = cordoned ? "uncordon" : "cordon";
  say(cordon, cordoned ? "Uncordon" : "Cordon");
  cordon.setAttribute("aria-label", `${cordon.textContent} ${name}`);
  const toggle = slot(row, "membership-toggle");
  toggle.dataset.do = isOut ? "join" : "leave";
  say(toggle, isOut ? "Join" : "Leave");
  toggle.setAttribute("aria-label", `${toggle.textContent} the fleet: ${name}`);
}

function showPlacement(row, { name, phase, says, clusters }) {
  const [shape, label] = PLACEMENT_PHASES[phase] ?? ["none", phase];
  say(slot(row, "name"), name);
  mark(slot(row, "pill"), shape);
  say(slot(row, "phase"), label);
  say(slot(row, "says"), says ?? "What it selects is available in every cluster that it picks");
  list(slot(row, "clusters"), "placed-row", clusters, (cluster) => cluster.name, showPlaced);
}

function showPlaced(row, { name, phase, wave, text, picked, failures }) {
  const [shape, label] = PLACED_PHASES[phase] ?? ["none", phase];
  mark(row, shape);
  row.title = picked ?? "";
  say(slot(row, "name"), name);
  say(slot(row, "phase"), label);
  say(slot(row, "wave"), wave === null || phase === "not-picked" ? "" : `wave ${wave}`);
  say(slot(row, "text"), text);
  list(slot(row, "failures"), "failure-row", failures, (failure) => failure, say);
}
