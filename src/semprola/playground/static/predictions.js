// The predictions side by side: each label on its own, and all of them with the rules.

import { $, bigNumber, el, percent } from "./dom.js";
import { belief, setBelief, setEvidence, state } from "./state.js";
import { term } from "./terms.js";
import { makeView, stateText } from "./views.js";

const LEGENDS = {
  grid: "Thick edges are probable; solid colour marks the prediction.",
  table: "Numbers are percentages; frames mark the prediction.",
  board: "Dark digits are probable; frames mark the prediction.",
};

export class Predictions {
  #described = null;
  #views = { alone: null, spl: null };
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Make the pictures of the labels, if the server says how to draw them. */
  show(described) {
    this.#described = described;
    const { view, labels } = described;
    const own = state.model === null;
    const believe = own ? (i) => this.#cycleBelief(labels[i]) : null;
    const fix = (i) => this.#cycleEvidence(labels[i]);
    this.#views = {
      alone: makeView(view, labels, believe, own ? "Press to change the belief" : ""),
      spl: makeView(view, labels, fix, "Press to fix or free"),
    };
    const hints = {
      alone: own ? "Press a part to set its belief to 10, 50 or 90 %." : "",
      spl: "Press a part to fix it to 1, fix it to 0, or free it.",
    };
    for (const [side, made] of Object.entries(this.#views)) {
      const hint = el("p", { class: "quiet" }, `${LEGENDS[view.kind]} ${hints[side]}`);
      $(side)
        .querySelector(".view")
        .replaceChildren(...(made ? [made.element, hint] : []));
    }
  }

  /** Show an answer; null if there is none. */
  update(answer) {
    const { labels } = this.#described;
    this.#showAlone(answer);
    this.#showWithRules(answer, labels);
    const evidence = labels.map((label) => state.evidence.get(label));
    const bad = new Set(answer?.independent?.broken.flatMap((item) => Object.keys(item.values)) ?? []);
    const own = state.model === null ? labels.map((label) => belief(label) / 100) : answer?.beliefs;
    this.#views.alone?.update({ probabilities: own, state: answer?.independent?.state, evidence, bad });
    this.#views.spl?.update({
      probabilities: answer?.marginals,
      state: answer?.mode?.state,
      evidence,
      bad: new Set(),
    });
  }

  /** A state in words. */
  inWords(found) {
    return stateText(this.#described.view, this.#described.labels, found);
  }

  #showAlone(answer) {
    const card = $("alone");
    const independent = answer?.independent;
    const broken = independent?.count ?? 0;
    const verdict = card.querySelector(".verdict");
    verdict.textContent = !independent
      ? ""
      : broken
        ? `Breaks ${broken === 1 ? "a rule" : `${broken} rules`}`
        : "Obeys all rules";
    verdict.classList.toggle("bad", broken > 0);
    verdict.classList.toggle("good", Boolean(independent) && broken === 0);
    card.querySelector(".state").textContent = independent ? this.inWords(independent.state) : "";
    const items = (independent?.broken ?? []).map(brokenRule);
    if (broken > items.length) items.push(el("li", {}, `and ${broken - items.length} more`));
    card.querySelector(".broken").replaceChildren(...items);
    $("alone-note").textContent =
      chanceText(answer) === ""
        ? "The labels that the model finds more likely than not."
        : "What the network believes about each label before the rules.";
    card.querySelector(".chance").textContent = chanceText(answer);
  }

  #showWithRules(answer, labels) {
    const culprits = answer?.impossible;
    $("impossible").hidden = culprits === undefined;
    if (culprits) {
      const values = culprits.map((i) => `${labels[i]} = ${state.evidence.get(labels[i])}`).join(" and ");
      const together = culprits.length > 1 ? " together" : "";
      $("impossible").textContent = `No valid state has this evidence: ${values} cannot hold${together}.`;
    }
    $("nothing").hidden = culprits === undefined;
    $("top-title").hidden = culprits !== undefined;
    $("free-culprits").onclick = () => {
      for (const i of culprits ?? []) setEvidence(labels[i], null);
      this.#onChange();
    };
    const known = answer && !culprits ? answer : null;
    const states = known ? { Mode: known.mode, ...(known.hamming ? { Hamming: known.hamming } : {}) } : {};
    $("states").replaceChildren(
      ...Object.entries(states).flatMap(([name, found]) => [
        el("dt", {}, term(name), found.exact === false ? " (best found, not proven)" : null),
        el("dd", {}, this.inWords(found.state), el("span", { class: "p" }, probabilityText(found))),
      ]),
    );
    const best = known?.top[0]?.share ?? known?.top[0]?.probability ?? 1;
    $("top").replaceChildren(
      ...(known?.top ?? []).map((each) => {
        const bar = el("span", { class: "bar-fill", "aria-hidden": "true" });
        bar.style.setProperty("--p", (each.share ?? each.probability) / best);
        const words = el("span", {}, this.inWords(each.state));
        return el("li", {}, el("span", { class: "p" }, probabilityText(each)), bar, words);
      }),
    );
    $("spl").querySelector(".entropy").textContent = known?.entropy ? entropyText(known.entropy) : "";
  }

  #cycleBelief(label) {
    const now = belief(label);
    setBelief(label, now < 30 ? 50 : now < 70 ? 90 : 10);
    this.#onChange();
  }

  #cycleEvidence(label) {
    const now = state.evidence.get(label);
    setEvidence(label, now === undefined ? 1 : now === 1 ? 0 : null);
    this.#onChange();
  }
}

function brokenRule({ rule, values }) {
  const entries = Object.entries(values).slice(0, 8);
  const text = entries.map(([name, value]) => `${name} = ${value}`).join(", ");
  const says = rule.endsWith("cannot hold together"); // the rule itself names the values
  return el("li", {}, el("code", {}, rule), says ? null : el("span", { class: "values" }, text));
}

/** A probability, or its bounds where rules do not compile as one circuit. */
function probabilityText({ probability, low, high }) {
  if (probability !== undefined) return percent(probability);
  if (high - low > 0.99) return "?";
  const [from, to] = [percent(low), percent(high)];
  return from === to ? from : `${from} – ${to}`;
}

function chanceText(answer) {
  const start = "Labels drawn independently obey the rules with probability";
  if (answer?.chance !== undefined) return `${start} ${percent(answer.chance)}.`;
  return answer?.most_chance === undefined ? "" : `${start} ${percent(answer.most_chance)} at most.`;
}

function entropyText({ low, high }) {
  if (low !== high) return `Entropy: between ${low.toFixed(2)} and ${high.toFixed(2)} bits.`;
  const states = Math.pow(2, low);
  const shown = states < 1000 ? states.toPrecision(3) : bigNumber(BigInt(Math.round(states)).toString());
  return `Entropy: ${low.toFixed(2)} bits, as uncertain as ${shown} equally likely states.`;
}
