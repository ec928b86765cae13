// The page: reads what the user sets, asks the server, shows the answers.

import { Latest, about, ask, watchConnection } from "./api.js";
import { CircuitView } from "./circuit.js";
import { $, bigNumber, debounce, el, percent } from "./dom.js";
import { LabelTable } from "./labels.js";
import { RowForm } from "./row.js";
import { SIZES, belief, evidenceText, fromFragment, load, setBelief, setEvidence, setProblem, settle, source, state, toFragment } from "./state.js";
import { makeView, stateText } from "./views.js";

const circuit = new CircuitView($("circuit-box"));
const table = new LabelTable(() => changed());
const form = new RowForm(() => changed(), (truth) => table.showTruth(truth));
const answers = new Latest();
let described = null; // what the server says about the current rules
let views = { alone: null, spl: null };
let hasStarted = false; // the first answer takes longer: the server loads torch
let running = null; // aborts the compilation under way

// rules ------------------------------------------------------------------------------------------------------------

/** Ask the server about the rules, then for predictions. */
async function compile() {
  running?.abort();
  const mine = (running = new AbortController());
  if (state.model === null && state.problem.structure === "none" && !state.problem.text.trim()) {
    showError({ kind: "empty", message: "Type a rule, such as cat -> animal, or load an example." });
    return;
  }
  const began = performance.now();
  const clock = setInterval(() => {
    $("status").textContent = `${hasStarted ? "Compiling" : "Starting"}… ${((performance.now() - began) / 1000).toFixed(0)} s`;
  }, 400);
  const reply = await ask("describe", { source: source() }, mine.signal);
  clearInterval(clock);
  hasStarted ||= reply !== null;
  if (reply === null || mine.signal.aborted) return;
  if (reply.error) showError(reply.error);
  else await showDescription(reply.result);
}

async function showDescription(result) {
  described = result;
  settle(result.labels);
  clearError();
  document.body.classList.remove("stale");
  $("status").textContent = `Compiled in ${(1000 * result.seconds).toFixed(0)} ms${result.backend ? ` (${result.backend})` : ""}.`;
  if (state.model !== null) $("status").textContent = `Model ${state.model}.`;
  showFacts(result);
  showSample(result.sample);
  const summary = `A circuit of ${result.nodes} nodes and ${result.edges} edges: ${result.sums} sums, ${result.products} products.`;
  $("circuit-note").textContent = result.picture.kind === "graph"
    ? "⊕ sums are choices, ⊗ products combine, boxes are labels. A thick edge carries much of the probability."
    : "Too large to draw node by node: how many nodes lie on each layer, the root at the top.";
  const isWide = result.labels.length > 12 || (result.picture.kind === "graph" && result.picture.width > 700);
  (isWide ? document.querySelector("main") : $("right")).append($("circuit"));
  circuit.show(result.picture, summary);
  const isLong = result.view.kind !== "list" && result.labels.length > 12 && window.innerWidth < 700;
  $("labels-fold").open = !isLong;
  table.show(result.labels, state.model === null);
  showViews(result);
  const rules = [...result.rules, ...(result.hidden_rules ? [`and ${result.hidden_rules} more`] : [])];
  const items = rules.map((rule) => el("li", {}, el("code", {}, rule)));
  $("model-rules").replaceChildren(...(items.length ? items : [el("li", { class: "quiet" }, "The folder has them as a circuit only.")]));
  if (state.model !== null) await form.show(state.model, result.columns);
  await predict();
}

function showFacts(result) {
  const facts = [
    ["labels", result.labels.length.toLocaleString("en")],
    ["models", bigNumber(result.models)],
    ["nodes", result.nodes.toLocaleString("en")],
    ["edges", result.edges.toLocaleString("en")],
    ["depth", result.depth.toLocaleString("en")],
  ];
  $("facts").replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { id: `fact-${name}` }, value))));
  $("fact-models").title = result.models;
}

const inWords = (found) => stateText(described.view, described.labels, found);

function showSample(sample) {
  $("sample-out").textContent = inWords(sample);
}

function showError(error) {
  $("status").textContent = "";
  $("text").setAttribute("aria-invalid", error.kind === "parse");
  document.body.classList.add("stale");
  const box = $("error");
  const inside = [];
  if (error.kind === "parse") {
    inside.push(el("p", {}, `Line ${error.line}, column ${error.column}: ${error.message}`), el("pre", {}, error.excerpt));
    markPlace(error.line, error.column);
  } else {
    inside.push(el("p", {}, error.message));
    markPlace(null);
  }
  box.className = error.kind === "empty" ? "hint" : "problem";
  box.replaceChildren(...inside);
}

function clearError() {
  $("text").removeAttribute("aria-invalid");
  $("error").replaceChildren();
  $("error").className = "";
  markPlace(null);
}

/** Underline a place of the text, in the copy of it that lies behind it. */
function markPlace(line, column) {
  const text = $("text").value;
  const backdrop = $("backdrop");
  if (line === null) {
    backdrop.replaceChildren();
    return;
  }
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, part) => sum + part.length + 1, 0);
  const at = before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  const word = /^(?:[\w.:]+|[^\s\w]{1,2})/u.exec(text.slice(at))?.[0] ?? text.slice(at, at + 1);
  const marked = word.trim() ? word : "\u00a0";
  backdrop.replaceChildren(text.slice(0, at), el("mark", {}, marked), `${text.slice(at + word.length)}\n`);
  backdrop.scrollTop = $("text").scrollTop;
}

// predictions ------------------------------------------------------------------------------------------------------

/** The user has set a belief, evidence or a value of the row. */
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
    const body = { source: source(), evidence: evidenceText(labels) };
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
  const { labels } = described;
  table.update(answer);
  circuit.update(answer?.flows ?? null);
  showAlone(answer);
  showWithRules(answer, labels);
  const evidence = labels.map((label) => state.evidence.get(label));
  const bad = new Set(answer?.independent?.broken.flatMap((item) => Object.keys(item.values)) ?? []);
  const own = state.model === null ? labels.map((label) => belief(label) / 100) : answer?.beliefs;
  views.alone?.update({ probabilities: own, state: answer?.independent?.state, evidence, bad });
  views.spl?.update({ probabilities: answer?.marginals, state: answer?.mode?.state, evidence, bad: new Set() });
  document.body.dataset.answered = String(Number(document.body.dataset.answered ?? 0) + 1);
}

function showAlone(answer) {
  const card = $("alone");
  const independent = answer?.independent;
  const broken = independent?.count ?? 0;
  const verdict = card.querySelector(".verdict");
  verdict.textContent = independent ? (broken ? `Breaks ${broken === 1 ? "a rule" : `${broken} rules`}` : "Obeys all rules") : "";
  verdict.classList.toggle("bad", broken > 0);
  verdict.classList.toggle("good", Boolean(independent) && broken === 0);
  card.querySelector(".state").textContent = independent ? inWords(independent.state) : "";
  const shown = independent?.broken ?? [];
  const items = shown.map(({ rule, values }) => el("li", {}, el("code", {}, rule), rule.endsWith("cannot hold together") ? null
    : el("span", { class: "values" }, Object.entries(values).slice(0, 8).map(([name, value]) => `${name} = ${value}`).join(", "))));
  if (broken > shown.length) items.push(el("li", {}, `and ${broken - shown.length} more`));
  card.querySelector(".broken").replaceChildren(...items);
  $("alone-note").textContent = answer?.chance === undefined
    ? "What the model finds more likely than not, label by label." : "What the network believes before the rules, label by label.";
  card.querySelector(".chance").textContent = answer?.chance === undefined ? ""
    : `Labels drawn one by one obey the rules with probability ${percent(answer.chance)}.`;
}

function showWithRules(answer, labels) {
  const culprits = answer?.impossible;
  $("impossible").hidden = culprits === undefined;
  if (culprits) {
    const values = culprits.map((i) => `${labels[i]} = ${state.evidence.get(labels[i])}`).join(" and ");
    $("impossible").textContent = `No model has this evidence: ${values} cannot hold${culprits.length > 1 ? " together" : ""}.`;
  }
  const card = $("spl");
  const known = answer && !culprits ? answer : null;
  const states = known ? [["Mode", known.mode], ["Hamming", known.hamming]] : [];
  $("states").replaceChildren(...states.flatMap(([name, found]) => [
    el("dt", {}, name), el("dd", {}, inWords(found.state), el("span", { class: "p" }, percent(found.probability)))]));
  const best = known?.top[0]?.probability ?? 1;
  $("top").replaceChildren(...(known?.top ?? []).map(({ state: found, probability }) => {
    const bar = el("span", { class: "bar-fill", "aria-hidden": "true" });
    bar.style.setProperty("--p", probability / best);
    return el("li", {}, el("span", { class: "p" }, percent(probability)), bar, el("span", {}, inWords(found)));
  }));
  const bits = known?.entropy;
  card.querySelector(".entropy").textContent = !bits ? "" : bits.low === bits.high
    ? `Entropy: ${bits.low.toFixed(2)} bits, as uncertain as ${Math.pow(2, bits.low).toPrecision(3)} equally likely states.`
    : `Entropy: between ${bits.low.toFixed(2)} and ${bits.high.toFixed(2)} bits.`;
}

// pictures of the labels -------------------------------------------------------------------------------------------

function showViews({ view, labels }) {
  const own = state.model === null;
  views = {
    alone: makeView(view, labels, own ? cycleBelief : null, own ? "Press to change the belief" : ""),
    spl: makeView(view, labels, cycleEvidence, "Press to fix or free"),
  };
  const legend = { grid: "Thick edges are probable; solid colour marks the prediction.", table: "Numbers are percentages; frames mark the prediction.",
    board: "Dark digits are probable; frames mark the prediction." }[view.kind];
  const hints = { alone: own ? "Press a part to believe it 10, 50 or 90 %." : "", spl: "Press a part to fix it to 1, to 0, or to free it." };
  for (const side of ["alone", "spl"]) {
    const place = $(side).querySelector(".view");
    place.replaceChildren(...(views[side] ? [views[side].element, el("p", { class: "quiet" }, `${legend} ${hints[side]}`)] : []));
  }
}

function cycleBelief(i) {
  const label = described.labels[i];
  const now = belief(label);
  setBelief(label, now < 30 ? 50 : now < 70 ? 90 : 10);
  changed();
}

function cycleEvidence(i) {
  const label = described.labels[i];
  const now = state.evidence.get(label);
  setEvidence(label, now === undefined ? 1 : now === 1 ? 0 : null);
  changed();
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
  if ($("text").value !== text) $("text").value = text;
  $("text-label").textContent = structure === "none" ? "Rules, one on each line" : "More rules, one on each line";
  $("editor").hidden = $("structure-row").hidden = !own;
  $("even").hidden = !own;
  $("model-row").hidden = $("model-rules").hidden = $("alone-note").hidden = own;
  $("belief-head").textContent = own ? "Belief" : "Model";
  $("model").value = state.model ?? "";
  table.showTruth(null);
}

function restart() {
  described = null;
  showControls();
  compile();
}

function edited() {
  setProblem($("structure").value, Number($("size").value), $("text").value);
  showControls();
  markPlace(null);
  compileSoon();
}

const compileSoon = debounce(250, compile);

async function copyLink() {
  const link = `${location.origin}/#${described ? toFragment(described.labels) : ""}`;
  history.replaceState(null, "", link);
  try {
    await navigator.clipboard.writeText(link);
    $("share").textContent = "Copied";
  } catch {
    $("share").textContent = "It is in the address bar";
  }
  setTimeout(() => ($("share").textContent = "Copy link"), 2000);
}

function listen() {
  for (const id of ["structure", "size", "text"]) $(id).addEventListener("input", edited);
  $("text").addEventListener("scroll", () => ($("backdrop").scrollTop = $("text").scrollTop));
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) compile();
  });
  $("share").addEventListener("click", copyLink);
  $("sample").addEventListener("click", async () => {
    const reply = await ask("sample", { source: source() });
    if (reply?.result && described) showSample(reply.result.sample);
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
  window.addEventListener("hashchange", () => {
    if (fromFragment(location.hash)) restart();
  });
  watchConnection((isLost) => {
    $("offline").hidden = !isLost;
    hasStarted = false;
    if (!isLost) compile();
  });
}

async function start() {
  listen();
  const offer = await about();
  $("version").textContent = `semprola ${offer.version}`;
  $("examples").replaceChildren(...offer.examples.map((example) => el("button", { type: "button", "data-example": example.name, click: () => {
    load(example);
    restart();
  } }, example.title)));
  if (offer.models.length) {
    $("open-model").hidden = false;
    $("model").replaceChildren(el("option", { value: "" }, "my rules"), ...offer.models.map((name) => el("option", { value: name }, `model ${name}`)));
  }
  form.setTable(offer.data);
  if (!fromFragment(location.hash)) {
    if (offer.models.length) state.model = offer.models[0];
    else load(offer.examples[0]);
  }
  restart();
}

start();
