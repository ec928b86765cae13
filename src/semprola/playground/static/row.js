// A row of data for a trained model: typed into fields, pasted as a line, or taken from the table by number.

import { ask } from "./api.js";
import { $, debounce, el } from "./dom.js";
import { source, state } from "./state.js";

export class RowForm {
  #columns = [];
  #fields = new Map();
  #onChange;
  #onTruth;
  #hasTable = false;

  constructor(onChange, onTruth) {
    this.#onChange = onChange;
    this.#onTruth = onTruth;
    $("row-paste").addEventListener("input", () => this.#paste($("row-paste").value));
    $("row-number").addEventListener(
      "input",
      debounce(150, () => this.#fetch()),
    );
  }

  /** Say that there is a table to take rows from. */
  setTable(name) {
    this.#hasTable = name !== null;
    $("row-picker").hidden = name === null;
    $("row-source").textContent = name === null ? "" : `of ${name}`;
  }

  /** Make the fields for the columns of a model. */
  async show(model, columns) {
    this.#columns = columns;
    const kept = state.row;
    const typed = columns.some(({ name }) => kept[name] !== undefined);
    state.row = Object.fromEntries(
      columns.map(({ name, categories }) => [name, kept[name] ?? (categories ? (categories[0] ?? "") : "0")]),
    );
    this.#fields = new Map(columns.map((column) => [column.name, this.#field(column)]));
    $("row-fields").replaceChildren(
      ...columns.map(({ name }) => el("label", {}, el("span", {}, name), this.#fields.get(name))),
    );
    this.#fill();
    if (this.#hasTable && !typed) await this.#fetch(true);
  }

  showError(message) {
    $("row-error").textContent = message;
  }

  #field({ name, categories }) {
    const listener = {
      input: () => {
        state.row[name] = field.value;
        this.#onTruth(null);
        this.#onChange();
      },
    };
    const field = categories
      ? el("select", listener, ...categories.map((value) => el("option", { value }, value)))
      : el("input", { type: "text", inputmode: "decimal", autocomplete: "off", ...listener });
    return field;
  }

  #fill() {
    for (const [name, field] of this.#fields) field.value = state.row[name];
  }

  #paste(line) {
    const values = line.split(/[,;\t]/).map((value) => value.trim());
    if (values.length !== this.#columns.length) {
      this.showError(line.trim() ? `There are ${values.length} values; the model needs ${this.#columns.length}.` : "");
      return;
    }
    this.#columns.forEach(({ name }, i) => (state.row[name] = values[i]));
    this.#fill();
    this.#onTruth(null);
    this.#onChange();
  }

  async #fetch(quietly = false) {
    const reply = await ask("row", { source: source(), number: Number($("row-number").value) });
    if (reply === null) return;
    if (reply.error) {
      this.showError(reply.error.message);
      return;
    }
    $("row-number").max = reply.result.rows;
    state.row = reply.result.values;
    this.#fill();
    this.#onTruth(reply.result.truth.some((value) => value !== null) ? reply.result.truth : null);
    if (!quietly) this.#onChange();
  }
}
