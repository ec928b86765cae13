// The circuit: a graph whose edges are as thick as their probability, the layers of a large one, or a list of several.

import { el, svg } from "./dom.js";

const SMALLEST_SCALE = 0.45;
const TALLEST = 900;

export class CircuitView {
  #box;
  #edges = [];

  constructor(box) {
    this.#box = box;
  }

  clear() {
    this.#edges = [];
    this.#box.replaceChildren();
  }

  show(picture, summary) {
    this.#edges = [];
    const others = { layers, circuits };
    this.#box.replaceChildren(picture.kind === "graph" ? this.#graph(picture, summary) : others[picture.kind](picture));
    this.#box.scrollLeft = (this.#box.scrollWidth - this.#box.clientWidth) / 2;
  }

  /** Paint the flow of probability; null if it is not known. */
  update(flows) {
    this.#edges.forEach((edge, i) => edge.style.setProperty("--flow", flows ? flows[i] : 0.15));
  }

  #graph(picture, summary) {
    this.#edges = picture.edges.map(([points]) => svg("path", { d: curve(points), class: "wire" }));
    const nodes = picture.nodes.map(([x, y, width, kind, text]) => node(x, y, width, kind, text));
    const drawing = svg(
      "svg",
      {
        class: "circuit",
        viewBox: `0 0 ${picture.width} ${picture.height}`,
        role: "img",
        "aria-label": summary,
      },
      ...this.#edges,
      ...nodes,
    );
    // all of it in sight, if its text can still be read then
    const room = this.#box.clientWidth - 2;
    const scale = Math.max(SMALLEST_SCALE, Math.min(1, room / picture.width, TALLEST / picture.height));
    drawing.style.width = `${picture.width * scale}px`;
    return drawing;
  }
}

function curve(points) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i < points.length; i += 1) {
    const [x0, y0] = points[i - 1];
    const [x1, y1] = points[i];
    const middle = (y0 + y1) / 2;
    path += `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  return path;
}

function node(x, y, width, kind, text) {
  const group = svg("g", { class: `gate ${kind}`, transform: `translate(${x} ${y})` });
  if (kind === "sum" || kind === "product") {
    const arm = kind === "sum" ? 6.5 : 4.6;
    const sign =
      kind === "sum"
        ? `M${-arm} 0H${arm}M0 ${-arm}V${arm}`
        : `M${-arm} ${-arm}L${arm} ${arm}M${-arm} ${arm}L${arm} ${-arm}`;
    group.append(
      svg("title", {}, kind === "sum" ? "sum (or)" : "product (and)"),
      svg("circle", { r: 13 }),
      svg("path", { d: sign }),
    );
  } else {
    group.append(
      svg("title", {}, text),
      svg("rect", { x: -width / 2, y: -12, width, height: 24, rx: 6 }),
      svg("text", { y: 4 }, text),
    );
  }
  return group;
}

function layers(picture) {
  const total = (row) => row[2] + row[3] + row[4];
  const widest = Math.max(...picture.rows.map(total));
  const rows = picture.rows.map((row) => {
    const parts = [
      ["sum", row[2]],
      ["product", row[3]],
      ["literal", row[4]],
    ].map(([kind, count]) => {
      const part = el("span", { class: `part ${kind}` });
      part.style.width = `${(100 * count) / widest}%`;
      return part;
    });
    const name = row[0] === row[1] ? `${row[0]}` : `${row[0]}–${row[1]}`;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", { "aria-hidden": "true" }, el("div", { class: "parts" }, ...parts)),
      el("td", { class: "number" }, total(row).toLocaleString("en")),
    );
  });
  const legend = ["sum", "product", "literal"].flatMap((kind) => [
    el("span", { class: `part ${kind} key` }),
    ` ${kind}s  `,
  ]);
  return el(
    "div",
    { class: "layers" },
    el("p", { class: "quiet" }, ...legend),
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "layer"), el("td"), el("th", { scope: "col" }, "nodes"))),
      el("tbody", {}, ...rows),
    ),
  );
}

function circuits(picture) {
  const head = ["circuit", "labels with a rule", "nodes", "edges"].map((name) => el("th", { scope: "col" }, name));
  const rows = picture.rows.map((row, i) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, String(i + 1)),
      ...row.map((count) => el("td", {}, count.toLocaleString("en"))),
    ),
  );
  return el("table", { class: "circuits" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}
