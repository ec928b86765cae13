// The text of the rules, with errors below it and a wavy line under the place that they point to.

import { $, el } from "./dom.js";

/** Show an error from the server; old predictions are faded until there are new ones. */
export function showError(error) {
  $("status").textContent = "";
  $("text").setAttribute("aria-invalid", error.kind === "parse");
  document.body.classList.add("stale");
  const box = $("error");
  const inside = [];
  if (error.kind === "parse") {
    inside.push(
      el("p", {}, `Line ${error.line}, column ${error.column}: ${error.message}`),
      el("pre", {}, error.excerpt),
    );
    markPlace(error.line, error.column);
  } else {
    inside.push(el("p", {}, error.message));
    markPlace(null);
  }
  box.className = error.kind === "empty" ? "hint" : "problem";
  box.replaceChildren(...inside);
}

/** The rules are fine. */
export function clearError() {
  $("text").removeAttribute("aria-invalid");
  $("error").replaceChildren();
  $("error").className = "";
  document.body.classList.remove("stale");
  markPlace(null);
}

/** Underline a place in the text, using a copy of the text behind it; null for none. */
export function markPlace(line, column) {
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
