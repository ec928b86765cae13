// The review: what is wrong with the rules, alone or beside a table; rules learnt from the table.

import { Latest, ask } from "./api.js";
import { $, debounce, el } from "./dom.js";
import { source, state } from "./state.js";

const DROPPED = "# dropped: "; // makes a rule a comment, so that it can be brought back

export class Review {
  #rows = null; // the text of the table
  #mostBytes = Infinity;
  #requests = new Latest();
  #setText;

  /** The function replaces the text of the rules. */
  constructor(setText) {
    this.#setText = setText;
    $("review-fold").addEventListener("toggle", () => this.update());
    $("table-file").addEventListener("change", () => this.#read($("table-file").files[0]));
    $("table-remove").addEventListener("click", () => this.setRows(null));
    $("learn").addEventListener("click", () => this.#learn());
    const box = $("rules");
    for (const kind of ["dragover", "drop"]) {
      box.addEventListener(kind, (event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        if (kind === "drop") this.#read(event.dataTransfer.files[0]);
      });
    }
  }

  set limit(bytes) {
    this.#mostBytes = bytes;
  }

  /** Use these rows from now on; null for none. */
  setRows(text, name = "") {
    this.#rows = text;
    $("table-name").textContent = name;
    $("table-remove").hidden = $("learn").hidden = text === null;
    $("table-file").value = "";
    for (const old of ["learnt", "report", "review-rules"]) $(old).replaceChildren();
    if (text !== null) $("review-fold").open = true;
    this.update();
  }

  /** Review the rules again, if somebody looks. */
  update = debounce(250, () => {
    if (!$("review-fold").open || state.model !== null) return;
    $("review").classList.add("waiting");
    this.#requests.run(async () => {
      if (this.#rows === null && !$("text").value.trim()) return this.#clear(); // a structure alone needs no review
      const reply = await ask("review", { source: source(), rows: this.#rows });
      if (reply === null) return;
      if (reply.error) this.#clear(mistake(reply.error));
      else this.#show(reply.result);
    });
  });

  #clear(note = "") {
    $("review").classList.remove("waiting");
    this.#note(note);
    for (const old of ["report", "review-rules"]) $(old).replaceChildren();
  }

  #show({ rules, sections }) {
    this.#clear();
    $("review-rules").replaceChildren(...rules.map((rule) => this.#rule(rule)));
    const byLine = new Map(rules.map((rule) => [String(rule.first), rule]));
    $("report").replaceChildren(
      ...sections.map(({ title, items, hidden }) =>
        el(
          "section",
          {},
          el("h3", {}, title),
          items.length ? el("ul", {}, ...items.map((item) => el("li", {}, ...this.#item(item, byLine)))) : null,
          hidden ? el("p", { class: "quiet" }, `and ${hidden} more`) : null,
        ),
      ),
    );
  }

  #rule(rule) {
    const box = el("input", { type: "checkbox", change: () => this.#toggle(rule) });
    box.checked = !rule.dropped;
    const name = rule.name ? `${rule.name}: ` : "";
    return el(
      "li",
      { class: rule.dropped ? "dropped" : "" },
      el("label", {}, box, el("code", {}, name + rule.text)),
      ...rule.notes.map((note) => el("span", { class: "note" }, note)),
    );
  }

  /** An item of the report, in which the places of rules drop these rules. */
  #item(text, byLine) {
    return text.split(/(\[line \d+[^\]]*\])/).map((part) => {
      const rule = byLine.get(/^\[line (\d+)/.exec(part)?.[1]);
      if (!rule) return part;
      const title = "Drop this rule";
      return el("button", { type: "button", class: "place", title, click: () => this.#toggle(rule) }, part.slice(1, -1));
    });
  }

  /** Drop a rule, or bring it back: its lines become comments, or rules again. */
  #toggle({ first, last, dropped }) {
    const lines = $("text").value.split("\n");
    for (let i = first - 1; i < last; i += 1) {
      if (dropped && lines[i].startsWith(DROPPED)) lines[i] = lines[i].slice(DROPPED.length);
      else if (!dropped) lines[i] = DROPPED + lines[i];
    }
    this.#setText(lines.join("\n"));
  }

  async #read(file) {
    if (!file) return;
    if (file.size > this.#mostBytes - 2 * $("text").value.length - 1024) {
      $("review-fold").open = true;
      this.#note(`${file.name} is too large for the page: use semprola check`);
      return;
    }
    this.setRows(await file.text(), file.name);
  }

  async #learn() {
    const reply = await ask("learn", { source: source(), rows: this.#rows });
    if (reply === null) return;
    this.#note(reply.error ? mistake(reply.error) : "");
    if (reply.error) return;
    const { rules, rows, hidden } = reply.result;
    const count = rules.length === 1 ? "1 more rule holds" : `${rules.length || "no"} more rules hold`;
    const items = rules.map((rule) => {
      const wrong = rule.exceptions ? `, ${rule.exceptions} exceptions` : "";
      const item = el(
        "li",
        {},
        el("button", { type: "button", click: () => this.#accept(rule, item) }, "Accept"),
        el("code", {}, rule.text),
        el("span", { class: "note" }, `${rule.support} rows${wrong}; by chance ${rule.by_chance} would break it`),
      );
      return item;
    });
    $("learnt").replaceChildren(
      el("h3", {}, `${count} in ${rows} rows`),
      el("ul", {}, ...items),
      el("p", { class: "quiet" }, hidden ? `and ${hidden} more` : ""),
    );
  }

  #accept(rule, item) {
    item.remove();
    const text = $("text").value.trimEnd();
    this.#setText(`${text}${text ? "\n" : ""}${rule.text}`);
  }

  #note(text) {
    $("review-note").textContent = text;
  }
}

function mistake(error) {
  return error.kind === "parse" && error.line ? `Line ${error.line}: ${error.message}` : error.message;
}
