// The page: reads the user's settings, asks the server, and shows the answers.

import { Latest, about, ask, watchConnection } from "./api.js";
import { CircuitView } from "./circuit.js";
import { $, bigNumber, debounce, el } from "./dom.js";
import { clearError, markPlace, showError } from "./editor.js";
import { LabelTable } from "./labels.js";
import { Predictions } from "./predictions.js";
import { Review } from "./review.js";
import { RowForm } from "./row.js";
import {
  SIZES,
  belief,
  evidenceText,
  fromFragment,
  load,
  setBelief,
  setProblem,
  settle,
  source,
  state,
  toFragment,
} from "./state.js";
import { explainWords, term } from "./terms.js";

const CIRCUIT_NOTES = {
  graph: "⊕ sums choose, ⊗ products combine, boxes are labels. Thick edges carry much of the probability.",
  layers: "Too large to draw every node. The bars show how many nodes each layer has, with the root at the top.",
  circuits: "The rules do not compile as one circuit. Each of these states some of them; a valid state obeys all.",
};

const circuit = new CircuitView($("circuit-box"));
const table = new LabelTable(() => changed());
const predictions = new Predictions(() => changed());
const form = new RowForm(
  () => changed(),
  (truth) => table.showTruth(truth),
);
const review = new Review((text) => {
  $("text").value = text;
  edited();
});
const answers = new Latest();
let described = null; // what the server says about the rules, and their source
let hasStarted = false; // the first answer takes longer, because the server loads torch
let running = null; // aborts the current compilation

// rules ------------------------------------------------------------------------------------------------------------

/** Ask the server about the rules, then for predictions. */
async function compile() {
  running?.abort();
  const mine = (running = new AbortController());
  if (state.model === null && state.problem.structure === "none" && !state.problem.text.trim()) {
    showError({ kind: "empty", message: "Type a rule, such as cat -> animal, or load an example." });
    return;
  }
  review.update();
  document.body.classList.add("stale"); // what is shown belongs to the old rules
  const began = performance.now();
  const clock = setInterval(() => {
    $("status").textContent =
      `${hasStarted ? (state.model === null ? "Compiling" : "Opening") : "Starting"}… ${((performance.now() - began) / 1000).toFixed(0)} s`;
  }, 400);
  const asked = source();
  const reply = await ask("describe", { source: asked }, mine.signal);
  clearInterval(clock);
  hasStarted ||= reply !== null;
  if (reply === null || mine.signal.aborted) return;
  if (reply.error) showError(reply.error);
  else await showDescription({ ...reply.result, source: asked });
}

async function showDescription(result) {
  $("python-text").hidden = true;
  described = result;
  settle(result.labels);
  clearError();
  $("status").textContent = `Compiled in ${(1000 * result.seconds).toFixed(0)} ms.`;
  if (state.model !== null) $("status").textContent = `Model ${state.model}.`;
  $("pooled").hidden = result.pooled === null;
  $("pooled").textContent = result.pooled === null ? "" : `No single circuit: ${result.pooled}.`;
  predictions.show(result);
  showFacts(result);
  showSample(result);
  const parts = `${result.sums} sums, ${result.products} products`;
  const summary = `A circuit of ${result.nodes} nodes and ${result.edges} edges: ${parts}.`;
  $("circuit-note").textContent = CIRCUIT_NOTES[result.picture.kind];
  const isWide = result.labels.length > 12 || (result.picture.kind === "graph" && result.picture.width > 700);
  (isWide ? document.querySelector("main") : $("right")).append($("circuit"));
  circuit.show(result.picture, summary);
  const isLong = result.view.kind !== "list" && result.labels.length > 12 && window.innerWidth < 700;
  $("labels-fold").open = !isLong;
  table.show(result.labels, state.model === null);
  const rules = [...result.rules, ...(result.hidden_rules ? [`and ${result.hidden_rules} more`] : [])];
  const items = rules.map((rule) => el("li", {}, el("code", {}, rule)));
  $("model-rules").replaceChildren(
    ...(items.length ? items : [el("li", { class: "quiet" }, "The model has its rules only as a circuit.")]),
  );
  if (state.model !== null) await form.show(state.model, result.columns);
  $("model-row").hidden = $("model-rules").hidden = state.model === null;
  await predict();
}

function showFacts(result) {
  const facts = [
    ["labels", "labels", result.labels.length.toLocaleString("en")],
    ["models", "valid states", `${result.pooled === null ? "" : "≤ "}${bigNumber(result.models)}`],
    ["nodes", "nodes", result.nodes.toLocaleString("en")],
    ["edges", "edges", result.edges.toLocaleString("en")],
    ["depth", "depth", result.depth.toLocaleString("en")],
  ];
  $("facts").replaceChildren(
    ...facts.map(([id, name, value]) => el("div", {}, el("dt", {}, name), el("dd", { id: `fact-${id}` }, value))),
  );
  $("fact-models").title = result.models;
}

function showSample({ sample, uniform }) {
  $("sample-out").textContent =
    sample === null
      ? "none was found in time"
      : predictions.inWords(sample) + (uniform ? "" : " (not all states are equally likely)");
}

// predictions ------------------------------------------------------------------------------------------------------

/** The user has changed a belief, evidence or a value of the row. */
function changed() {
  table.refresh();
  predict();
}

function predict() {
  writeAddress();
  return answers.run(async () => {
    const asked = described;
    if (asked === null) return;
    const { labels } = asked;
    const body = { source: asked.source, evidence: evidenceText(labels) };
    $("python-text").hidden = true; // it has other beliefs
    if (state.model === null) body.beliefs = labels.map((label) => belief(label) / 100);
    else body.row = state.row;
    const reply = await ask("answer", body);
    if (reply === null || asked !== described) return;
    if (state.model !== null) form.showError(reply.error?.message ?? "");
    if (reply.error) {
      if (state.model === null) showError(reply.error);
      showAnswer(null);
    } else {
      showAnswer(reply.result);
    }
  });
}

function showAnswer(answer) {
  table.update(answer);
  circuit.update(answer?.flows ?? null);
  predictions.update(answer);
  document.body.dataset.answered = String(Number(document.body.dataset.answered ?? 0) + 1);
}

// the address and the controls -------------------------------------------------------------------------------------

const writeAddress = debounce(150, () => {
  if (described !== null && state.pending === null) history.replaceState(null, "", `#${toFragment(described.labels)}`);
});

function showControls() {
  const { structure, size, text } = state.problem;
  const own = state.model === null;
  $("structure").value = structure;
  const [low, high] = SIZES[structure];
  $("size-label").hidden = low === high;
  Object.assign($("size"), { min: low, max: high, value: size });
  $("size-note").textContent = low < high ? `from ${low} to ${high}` : "";
  $("size-note").classList.toggle("refused", state.refused !== null);
  if (state.refused !== null) $("size-note").textContent = `${state.refused} is not ${$("size-note").textContent}`;
  if ($("text").value !== text) $("text").value = text;
  $("text-label").textContent = structure === "none" ? "Rules, one per line" : "More rules, one per line";
  $("editor").hidden = $("syntax").hidden = $("structure-row").hidden = !own;
  $("even").hidden = $("review").hidden = !own;
  $("model-row").hidden = true; // until the model's inputs are known
  $("model-rules").hidden = true;
  $("alone-note").hidden = own;
  $("copy-row").hidden = !own;
  $("belief-head").replaceChildren(own ? term("Belief") : "Model");
  $("model").value = state.model ?? "";
  table.showTruth(null);
}

/** Load an example, and offer to bring back what it replaces. */
function choose(example) {
  const before = described ? toFragment(described.labels) : null;
  load(example);
  review.setRows(example.rows ?? null, example.rows ? "rows of the example" : "");
  $("undo-row").hidden = before === null;
  $("undo").onclick = () => {
    $("undo-row").hidden = true;
    if (fromFragment(before)) restart();
  };
  restart();
}

function restart() {
  described = null;
  showControls();
  compile();
}

function edited() {
  $("undo-row").hidden = true;
  setProblem($("structure").value, Number($("size").value), $("text").value);
  showControls();
  markPlace(null);
  compileSoon();
}

const compileSoon = debounce(250, compile);

/** Copy text, and say on the button for a moment whether that worked. */
async function copy(button, text, otherwise) {
  const usual = (button.dataset.usual ??= button.textContent);
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = otherwise;
  }
  setTimeout(() => (button.textContent = usual), 2000);
}

async function copyLink() {
  const link = `${location.origin}/#${described ? toFragment(described.labels) : ""}`;
  history.replaceState(null, "", link);
  await copy($("share"), link, "See the address bar");
}

/** Show what is on the page as a program, and copy it. */
async function copyPython() {
  const asked = described;
  if (asked === null || state.model !== null) return;
  const { labels } = asked;
  const beliefs = labels.map((label) => belief(label) / 100);
  const reply = await ask("python", { source: asked.source, beliefs, evidence: evidenceText(labels) });
  if (!reply?.result || asked !== described) return;
  $("python-text").textContent = reply.result.python;
  $("python-text").hidden = false;
  await copy($("python"), reply.result.python, "See below");
}

function listen() {
  explainWords(document);
  for (const id of ["structure", "size", "text"]) $(id).addEventListener("input", edited);
  $("text").addEventListener("scroll", () => ($("backdrop").scrollTop = $("text").scrollTop));
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) compile();
  });
  $("share").addEventListener("click", copyLink);
  $("python").addEventListener("click", copyPython);
  $("sample").addEventListener("click", async () => {
    const asked = described;
    if (asked === null) return;
    const reply = await ask("sample", { source: asked.source });
    if (reply?.result && asked === described) showSample(reply.result);
  });
  $("free-all").addEventListener("click", () => {
    state.evidence.clear();
    changed();
  });
  $("even").addEventListener("click", () => {
    described?.labels.forEach((label) => setBelief(label, 50));
    changed();
  });
  $("model").addEventListener("change", () => {
    state.model = $("model").value || null;
    state.row = {};
    state.evidence.clear();
    restart();
  });
  window.addEventListener("hashchange", (event) => {
    // the address itself may have been written again in the meantime
    if (fromFragment(new URL(event.newURL).hash)) restart();
  });
  watchConnection((isLost) => {
    $("offline").hidden = !isLost;
    hasStarted = false;
    if (!isLost) compile();
  });
}

async function start() {
  let offer;
  try {
    offer = await about();
  } catch {
    $("offline").hidden = false;
    setTimeout(start, 1000);
    return;
  }
  $("offline").hidden = true;
  listen();
  review.limit = offer.limits.body;
  $("version").textContent = `semprola ${offer.version}`;
  if (offer.docs) Object.assign($("docs"), { hidden: false, href: offer.docs });
  $("examples").replaceChildren(
    ...offer.examples.map((example) =>
      el(
        "button",
        {
          type: "button",
          "data-example": example.name,
          click: () => choose(example),
        },
        example.title,
      ),
    ),
  );
  if (offer.models.length) {
    $("open-model").hidden = false;
    $("model").replaceChildren(
      el("option", { value: "" }, "my rules"),
      ...offer.models.map((name) => el("option", { value: name }, `model ${name}`)),
    );
  }
  form.setTable(offer.data);
  if (!fromFragment(location.hash)) {
    if (offer.models.length) state.model = offer.models[0];
    else load(offer.examples[0]);
  }
  restart();
  // until now, what is typed would have been replaced
  $("text").readOnly = $("structure").disabled = false;
}

start();
