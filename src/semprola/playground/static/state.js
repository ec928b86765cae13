// The user's settings, and how they are written into the address.

export const SIZES = { none: [0, 0], grid: [2, 6], ranking: [2, 7], sudoku: [4, 4] };
const LOW = 1;
const HIGH = 99;

export const state = {
  problem: { structure: "none", size: 0, text: "" },
  model: null,
  row: {},
  beliefs: new Map(), // label → percent
  evidence: new Map(), // label → 0 or 1
  refused: null, // a size that was asked for but does not exist
  pending: null, // beliefs and evidence of an address, until its labels are known
};

export const belief = (label) => state.beliefs.get(label) ?? 50;

export function setBelief(label, percent) {
  state.beliefs.set(label, Math.min(HIGH, Math.max(LOW, Math.round(percent))));
}

export function setEvidence(label, value) {
  if (value === 0 || value === 1) state.evidence.set(label, value);
  else state.evidence.delete(label);
}

export const evidenceText = (labels) => labels.map((label) => state.evidence.get(label) ?? "-").join("");

export const source = () => (state.model === null ? { problem: state.problem } : { model: state.model });

export function setProblem(structure, size, text) {
  const [low, high] = SIZES[structure] ?? SIZES.none;
  const known = structure in SIZES ? structure : "none";
  const possible = Math.min(high, Math.max(low, Math.round(size) || low));
  state.refused = low < high && size !== possible ? size : null;
  state.problem = { structure: known, size: possible, text };
}

export function load(example) {
  state.model = null;
  state.pending = null;
  setProblem(example.problem.structure, example.problem.size, example.problem.text);
  state.beliefs.clear();
  state.evidence.clear();
  for (const [label, p] of Object.entries(example.beliefs)) setBelief(label, 100 * p);
  for (const [label, value] of Object.entries(example.evidence)) setEvidence(label, value);
  state.pending = example.other === undefined ? null : { other: 100 * example.other };
}

/** Apply what an address or an example says about labels, now that the labels are known. */
export function settle(labels) {
  const pending = state.pending;
  state.pending = null;
  if (!pending) return;
  labels.forEach((label, i) => {
    if (pending.other !== undefined && !state.beliefs.has(label)) setBelief(label, pending.other);
    if (pending.beliefs?.length === labels.length) setBelief(label, pending.beliefs[i]);
    if (pending.evidence?.length === labels.length) setEvidence(label, { 0: 0, 1: 1 }[pending.evidence[i]]);
  });
}

/** The state as a fragment, without "#". */
export function toFragment(labels) {
  const parts = new URLSearchParams();
  if (state.model !== null) {
    parts.set("model", state.model);
    parts.set("row", JSON.stringify(state.row));
  } else {
    parts.set("rules", state.problem.text);
    if (state.problem.structure !== "none") parts.set("structure", `${state.problem.structure}:${state.problem.size}`);
    parts.set("beliefs", labels.map(belief).join("."));
  }
  if (labels.some((label) => state.evidence.has(label))) parts.set("evidence", evidenceText(labels));
  return parts.toString();
}

/** Take the state from a fragment; false if it holds none. */
export function fromFragment(fragment) {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const model = parts.get("model");
  if (model === null && parts.get("rules") === null) return false;
  const [structure, size] = (parts.get("structure") ?? "none:0").split(":");
  state.model = model;
  state.row = model === null ? {} : readRow(parts.get("row"));
  setProblem(structure, Number(size), parts.get("rules") ?? "");
  state.beliefs.clear();
  state.evidence.clear();
  const beliefs = parts.get("beliefs")?.split(".").map(Number);
  state.pending = {
    beliefs: beliefs?.every(Number.isFinite) ? beliefs : undefined,
    evidence: parts.get("evidence") ?? undefined,
  };
  return true;
}

function readRow(text) {
  try {
    const row = JSON.parse(text ?? "{}");
    return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, String(value)]));
  } catch {
    return {};
  }
}
