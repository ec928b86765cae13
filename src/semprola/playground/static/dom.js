// Small helpers to build elements. Text is always inserted as text: nothing here ever parses HTML.

const SVG = "http://www.w3.org/2000/svg";
const NARROW = "\u202f"; // keeps a number and its unit on one line

export const $ = (id) => document.getElementById(id);

/** An element with attributes (true: bare attribute; false or null: none; functions: listeners) and children. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same, for parts of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** "72 %", "0.4 %", "< 0.1 %". */
export function percent(p) {
  if (p >= 0.9995) return p === 1 ? `100${NARROW}%` : `> 99.9${NARROW}%`;
  if (p < 0.0005) return p === 0 ? `0${NARROW}%` : `< 0.1${NARROW}%`;
  const value = 100 * p;
  return `${value < 9.95 || value > 99.05 ? value.toFixed(1) : Math.round(value)}${NARROW}%`;
}

/** A whole number, given as digits: "1,262,816", or "1.85 × 10^19" if it is long. */
export function bigNumber(digits) {
  if (digits.length <= 12) return digits.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${digits[0]}.${digits.slice(1, 3)} × 10^${digits.length - 1}`;
}

/** The labels that are 1 in a state, as text. */
export function named(state, labels, most = 24) {
  const ones = labels.filter((_, i) => state[i]);
  if (!ones.length) return "no label";
  return ones.slice(0, most).join(", ") + (ones.length > most ? `, and ${ones.length - most} more` : "");
}

/** Call a function once there have been no calls for some milliseconds. */
export function debounce(milliseconds, work) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), milliseconds);
  };
}
