// The table of labels: a slider for the belief, a choice for the evidence, and all predictions side by side.

import { $, el, percent } from "./dom.js";
import { belief, setBelief, setEvidence, state } from "./state.js";

const CHOICES = [
  ["-", "free"],
  ["1", "1"],
  ["0", "0"],
];

export class LabelTable {
  #rows = [];
  #labels = [];
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Show these labels; sliders only if beliefs can be set. */
  show(labels, withSliders) {
    this.#labels = labels;
    this.#rows = labels.map((label, i) => this.#row(label, i, withSliders));
    $("label-rows").replaceChildren(...this.#rows.map((row) => row.element));
    this.refresh();
  }

  /** Set the controls according to the state. */
  refresh() {
    this.#labels.forEach((label, i) => {
      const row = this.#rows[i];
      if (row.slider) {
        row.slider.value = belief(label);
        row.slider.setAttribute("aria-valuetext", `${belief(label)} %`);
        row.number.textContent = `${belief(label)} %`;
      }
      const known = String(state.evidence.get(label) ?? "-");
      for (const radio of row.radios) radio.checked = radio.value === known;
      row.element.classList.toggle("fixed", known !== "-");
    });
  }

  /** Show an answer; null while there is none. */
  update(answer) {
    const bad = new Set(answer?.independent?.broken.flatMap((item) => Object.keys(item.values)) ?? []);
    this.#labels.forEach((label, i) => {
      const row = this.#rows[i];
      const marginal = answer?.marginals?.[i];
      mark(row.alone, answer?.independent?.state[i]);
      row.alone.classList.toggle("bad", bad.has(label));
      mark(row.mode, answer?.mode?.state[i]);
      mark(row.hamming, answer?.hamming?.state[i]);
      row.bar.style.setProperty("--p", marginal ?? 0);
      row.marginal.textContent = marginal === undefined ? "–" : percent(marginal);
      if (!row.slider) row.number.textContent = answer?.beliefs ? percent(answer.beliefs[i]) : "–";
    });
  }

  /** Show the true labels of a row of data; null for none. */
  showTruth(truth) {
    document.querySelectorAll("#labels .truth").forEach((cell) => (cell.hidden = truth === null));
    this.#rows.forEach((row, i) => mark(row.truth, truth?.[i] ?? undefined));
  }

  #row(label, i, withSliders) {
    const number = el("span", { class: "number" });
    const slider = withSliders
      ? el("input", {
          type: "range",
          min: 1,
          max: 99,
          "aria-label": `Belief that ${label} holds`,
          input: () => {
            setBelief(label, Number(slider.value));
            this.#onChange();
          },
        })
      : null;
    const radios = [];
    const evidence = el("fieldset", { class: "evidence" }, el("legend", { class: "hidden" }, `Evidence for ${label}`));
    for (const [value, text] of CHOICES) {
      const radio = el("input", {
        type: "radio",
        name: `evidence-${i}`,
        value,
        change: () => {
          setEvidence(label, value === "-" ? null : Number(value));
          this.#onChange();
        },
      });
      radios.push(radio);
      evidence.append(el("label", {}, radio, el("span", {}, text)));
    }
    const cell = (name, ...inside) => el("td", { role: "cell", class: name, "data-head": heads[name] }, ...inside);
    const bar = el("span", { class: "bar-fill", "aria-hidden": "true" });
    const marginal = el("span", { class: "number" });
    const [alone, mode, hamming, truth] = ["alone", "mode", "hamming", "truth"].map((name) => cell(name));
    truth.hidden = true;
    const element = el(
      "tr",
      { role: "row" },
      el("th", { role: "rowheader", scope: "row", title: label }, label),
      cell("belief", slider, number),
      cell("fix", evidence),
      alone,
      cell("marginal", bar, marginal),
      mode,
      hamming,
      truth,
    );
    return { element, slider, number, radios, alone, mode, hamming, truth, bar, marginal };
  }
}

const heads = {
  belief: "believes",
  fix: "evidence",
  alone: "alone",
  marginal: "with the rules",
  mode: "mode",
  hamming: "Hamming",
  truth: "truth",
};

function mark(cell, value) {
  cell.textContent = value === undefined ? "–" : value ? "1" : "0";
  cell.classList.toggle("one", value === 1);
}
