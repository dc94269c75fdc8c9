// Elements, numbers and tooltips. Text only ever becomes text: nothing here writes HTML.
const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export const find = (id) => document.getElementById(id);

// Four digits, or all before the point: 0.0979, 12.35, 29,934, 3.62e7.
export function digits(value, count = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) return value.toExponential(count - 2).replaceAll("-", "−").replace("e+", "e");
  const whole = size < 1 ? 0 : Math.floor(Math.log10(size)) + 1;
  const rounded = Number(value.toPrecision(Math.max(count, whole)));
  return rounded.toLocaleString("en", { maximumFractionDigits: 6 }).replace("-", "−");
}

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

export function si(value, unit) {
  if (value === null || value === undefined) return unit === "s" ? "never" : "–";
  if (value === 0 || !unit) return `${digits(value, 3)}${unit ? " " + unit : ""}`;
  const [scale, prefix] = PREFIXES.find(([one]) => Math.abs(value) >= 0.9995 * one) ?? PREFIXES.at(-1);
  return `${digits(value / scale, 3)} ${prefix}${unit}`;
}

// A power as radio engineers read it; a cell without units has its bare number.
export function dbm(watts, hasUnits) {
  if (!hasUnits || !(watts > 0)) return si(watts, hasUnits ? "W" : "");
  return `${(10 * Math.log10(1e3 * watts)).toFixed(1).replace("-", "−")} dBm`;
}

// Words are a text or elements; null hides them.
export function tip(words, x, y) {
  const box = find("tooltip");
  if (words === null) { box.hidden = true; return; }
  box.replaceChildren(...[words].flat());
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  box.style.top = `${Math.max(4, y + 14 + height > innerHeight ? y - height - 10 : y + 14)}px`;
}

// Where a pointer is in the picture's own units.
export function pointIn(picture, event) {
  const box = picture.getBoundingClientRect();
  const view = picture.viewBox.baseVal;
  return [((event.clientX - box.left) / box.width) * view.width, ((event.clientY - box.top) / box.height) * view.height];
}

export function toScreen(picture, x, y) {
  const box = picture.getBoundingClientRect();
  const view = picture.viewBox.baseVal;
  return [box.left + (x / view.width) * box.width, box.top + (y / view.height) * box.height];
}
