// Words with an explanation that appears when they are pointed at, tapped or focused.

import { el } from "./dom.js";

const MEANINGS = {
  Belief: "How likely the network finds this label on its own, before any rule.",
  Evidence: "A value that you know: fix the label to 1 or 0, and all other answers follow.",
  Alone: "1 if the belief is above 50 %. Together, such labels can break rules.",
  "With the rules": "The exact probability of the label, given the rules and the evidence.",
  Mode: "The most probable state that obeys all rules.",
  Hamming: "The state that obeys all rules and has the fewest wrong labels on average.",
};

/** A word of the page with its explanation. */
export function term(word) {
  const meaning = MEANINGS[word];
  return el("span", { class: "term", tabindex: 0, "data-tip": meaning, "aria-description": meaning }, word);
}

/** Explain the words that stand in the page itself. */
export function explainWords(root) {
  for (const place of root.querySelectorAll("[data-term]")) place.replaceChildren(term(place.dataset.term));
}
