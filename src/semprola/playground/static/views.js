// Pictures of the labels: a grid of edges, a table, a sudoku board. Each is drawn twice, without and with the rules.

import { el, named, percent, svg } from "./dom.js";

/**
 * A picture of the labels, or null for a plain list.
 * @param view how to draw the labels, from the server.
 * @param labels their names.
 * @param press called with the index of a label that the user has pressed; null if nothing can be pressed.
 * @param verb what pressing does, for screen readers.
 * @returns {element, update(probabilities, state, evidence, bad)}
 */
export function makeView(view, labels, press, verb) {
  const makers = { grid: gridView, table: tableView, board: boardView };
  const made = makers[view.kind]?.(view, labels, press, verb) ?? null;
  made?.update({ evidence: [], bad: new Set() }); // give every part a name before there is an answer
  return made;
}

/**
 * A state in words that suit the picture: a path, the rows of a board or of a table, or the labels that are 1. Labels
 * that are 1 but not in the picture follow.
 */
export function stateText(view, labels, state) {
  const drawn = new Set((view.edges?.map(([label]) => label) ?? view.cells?.flat(2) ?? []).filter((i) => i !== null));
  const others = labels.filter((_, i) => state[i] && !drawn.has(i));
  const picture = pictureText(view, labels, state);
  if (picture === null) return named(state, labels);
  return others.length ? `${picture}; ${named(others.map(() => 1), others)}` : picture;
}

/** The part of a state that the picture shows, or null if it has no words of its own. */
function pictureText(view, labels, state) {
  if (view.kind === "grid") return pathText(view, state);
  if (view.kind === "board") {
    const digit = (cell) => {
      const ones = cell.flatMap((label, i) => (state[label] ? [i + 1] : []));
      return ones.length === 1 ? ones[0] : ones.length ? "?" : "·";
    };
    return view.cells.map((row) => row.map(digit).join("")).join(" / ");
  }
  if (view.kind === "table") {
    const rows = view.rows.map((name, r) => [name, view.columns.filter((_, c) => state[view.cells[r][c]])]);
    return (
      rows
        .filter(([, ones]) => ones.length)
        .map(([name, ones]) => `${name} ${ones.join(" ")}`)
        .join("; ") || "no label"
    );
  }
  return null;
}

/** The nodes that a path visits, or null if the edges form none from corner to corner. */
function pathText(view, state) {
  const edges = view.edges.filter(([label]) => state[label]);
  const name = (row, column) => `${"abcdef"[column]}${row + 1}`;
  const steps = new Map();
  for (const [, r1, c1, r2, c2] of edges) {
    const [one, other] = [name(r1, c1), name(r2, c2)];
    steps.set(one, [...(steps.get(one) ?? []), other]);
    steps.set(other, [...(steps.get(other) ?? []), one]);
  }
  const visited = ["a1"];
  while (visited.length <= edges.length) {
    const next = (steps.get(visited.at(-1)) ?? []).filter((node) => node !== visited.at(-2));
    if (next.length !== 1 || visited.includes(next[0])) return null;
    visited.push(next[0]);
  }
  return visited.at(-1) === name(view.size - 1, view.size - 1) ? visited.join(" → ") : null;
}

function spoken(label, p, chosen, known, verb) {
  const fixed = known === undefined ? "" : `, fixed to ${known}`;
  const value = p === undefined ? "unknown" : percent(p);
  return `${label}: ${value}${chosen ? ", predicted" : ""}${fixed}${verb ? `. ${verb}` : ""}`;
}

function paint(element, label, i, answer, verb) {
  const { probabilities, state, evidence, bad } = answer;
  const p = probabilities?.[i];
  element.style.setProperty("--p", p ?? 0);
  element.classList.toggle("on", state?.[i] === 1);
  element.classList.toggle("known", evidence[i] !== undefined);
  element.classList.toggle("known-0", evidence[i] === 0);
  element.classList.toggle("bad", bad.has(label) && state?.[i] === 1);
  element.setAttribute("aria-label", spoken(label, p, state?.[i] === 1, evidence[i], verb));
}

function gridView(view, labels, press, verb) {
  const step = 64;
  const at = (n) => 34 + n * step;
  const side = 2 * 34 + (view.size - 1) * step;
  const edges = view.edges.map(([label, r1, c1, r2, c2]) => {
    const line = { x1: at(c1), y1: at(r1), x2: at(c2), y2: at(r2) };
    const act = press && (() => press(label));
    const group = svg(
      "g",
      {
        class: "edge",
        role: press ? "button" : "img",
        tabindex: press ? 0 : null,
        click: act ?? undefined,
        keydown: act
          ? (event) => {
              if (event.key !== "Enter" && event.key !== " ") return;
              event.preventDefault();
              act();
            }
          : undefined,
      },
      svg("line", { ...line, class: "hit" }),
      svg("line", { ...line, class: "ink" }),
    );
    return { label, group };
  });
  const nodes = [];
  for (let row = 0; row < view.size; row += 1) {
    for (let column = 0; column < view.size; column += 1) {
      const isEnd = row + column === 0 || row + column === 2 * (view.size - 1);
      nodes.push(svg("circle", { cx: at(column), cy: at(row), r: 11, class: isEnd ? "node end" : "node" }));
      nodes.push(svg("text", { x: at(column), y: at(row) + 3.5, class: "name" }, `${"abcdef"[column]}${row + 1}`));
    }
  }
  const element = svg(
    "svg",
    { class: "grid", viewBox: `0 0 ${side} ${side}`, role: "group", "aria-label": "the grid" },
    ...edges.map((edge) => edge.group),
    svg("g", { "aria-hidden": "true" }, ...nodes),
  );
  return {
    element,
    update: (answer) => edges.forEach(({ label, group }) => paint(group, labels[label], label, answer, verb)),
  };
}

function pressable(i, press, text) {
  return el(
    "button",
    { type: "button", class: "cell", disabled: press === null, click: () => press?.(i) },
    el("span", { "aria-hidden": "true" }, text),
  );
}

function tableView(view, labels, press, verb) {
  const cells = [];
  const body = view.rows.map((name, r) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      ...view.columns.map((_, c) => {
        const label = view.cells[r][c];
        if (label === null) return el("td", {});
        const button = pressable(label, press, "");
        cells.push({ label, button });
        return el("td", {}, button);
      }),
    ),
  );
  const head = el("tr", {}, el("td", {}), ...view.columns.map((name) => el("th", { scope: "col" }, name)));
  const element = el(
    "div",
    { class: "table-box", tabindex: 0, role: "group", "aria-label": "the table" },
    el("table", { class: "cells" }, el("thead", {}, head), el("tbody", {}, ...body)),
  );
  const update = (answer) =>
    cells.forEach(({ label, button }) => {
      paint(button, labels[label], label, answer, verb);
      const p = answer.probabilities?.[label];
      button.firstChild.textContent = p === undefined ? "–" : Math.round(100 * p);
    });
  return { element, update };
}

function boardView(view, labels, press, verb) {
  const cells = [];
  const squares = view.cells.flatMap((row, r) =>
    row.map((digits, c) => {
      const buttons = digits.map((label, digit) => {
        const button = pressable(label, press, String(digit + 1));
        cells.push({ label, button });
        return button;
      });
      const edge = `${c % view.box === 0 && c ? " line-left" : ""}${r % view.box === 0 && r ? " line-above" : ""}`;
      return el(
        "div",
        { class: `square${edge}`, role: "group", "aria-label": `row ${r + 1}, column ${c + 1}` },
        ...buttons,
      );
    }),
  );
  const element = el("div", { class: "board", role: "group", "aria-label": "the board" }, ...squares);
  return {
    element,
    update: (answer) => cells.forEach(({ label, button }) => paint(button, labels[label], label, answer, verb)),
  };
}
