// A pair of axes and what is drawn between them, as SVG. Pages and the explorer share it.
import { digits, pointIn, svg, tip, toScreen } from "./dom.js";

const MARGIN = { left: 58, right: 16, top: 14, bottom: 38 };
const LETTER = 6.2; // what a letter of a label takes
let clips = 0;

export class Chart {
  // Of each axis: label, domain, log, format, count of ticks, or their values. A title stands above, a corner at its right, or under it
  // where both do not fit.
  constructor({ width = 560, height = 300, margin = MARGIN, x, y, label, title = "", corner = "" }) {
    const under = title && corner && LETTER * Math.max(2 * corner.length, title.length + corner.length + 2) > width ? 14 : 0;
    this.box = { x0: margin.left, x1: width - margin.right, y0: height - margin.bottom, y1: margin.top + under };
    this.x = scale(x, this.box.x0, this.box.x1);
    this.y = scale(y, this.box.y0, this.box.y1);
    this.spots = [];
    this.labels = []; // where words stand, so that none covers another
    const clip = `clip-${++clips}`;
    this.inside = svg("g", { "clip-path": `url(#${clip})` });
    this.above = svg("g");
    this.node = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, tabindex: 0 },
      svg("defs", {}, svg("clipPath", { id: clip }, svg("rect", { x: this.box.x0, y: this.box.y1 - 6, width: this.box.x1 - this.box.x0, height: this.box.y0 - this.box.y1 + 6 }))),
      this.axes(x, y), this.inside, this.above,
      title ? svg("text", { class: "title", x: 12, y: 13 }, title) : null,
      corner ? svg("text", { class: "tick", x: under ? 12 : this.box.x1, y: 13 + under, "text-anchor": under ? "start" : "end" }, corner) : null);
    this.node.addEventListener("pointermove", (event) => this.point(event));
    this.node.addEventListener("pointerleave", () => tip(null));
    this.node.addEventListener("keydown", (event) => this.step(event));
    this.node.addEventListener("blur", () => tip(null));
  }

  axes(x, y) {
    const { x0, x1, y0, y1 } = this.box;
    const group = svg("g");
    for (const value of y.values ?? this.y.ticks(y.count ?? 5)) group.append(
      svg("line", { class: "grid", x1: x0, x2: x1, y1: this.y(value), y2: this.y(value) }),
      svg("text", { class: "tick", x: x0 - 7, y: this.y(value) + 4, "text-anchor": "end" }, (y.format ?? digits)(value)));
    let free = -Infinity; // a label that would touch the one before it is left out
    for (const value of x.values ?? this.x.ticks(6)) {
      const words = (x.format ?? digits)(value), half = (LETTER * words.length) / 2;
      if (this.x(value) - half < free) continue;
      free = this.x(value) + half + LETTER;
      group.append(
        svg("line", { class: "grid", x1: this.x(value), x2: this.x(value), y1: y0, y2: y1 }),
        svg("text", { class: "tick", x: this.x(value), y: y0 + 16, "text-anchor": "middle" }, words));
    }
    group.append(
      svg("line", { class: "axis", x1: x0, x2: x1, y1: y0, y2: y0 }),
      svg("text", { x: (x0 + x1) / 2, y: y0 + 33, "text-anchor": "middle", "data-word": x.word }, x.label));
    if (y.label) group.append(svg("text", { x: 13, y: (y0 + y1) / 2, "text-anchor": "middle", transform: `rotate(-90 13 ${(y0 + y1) / 2})` }, y.label));
    return group;
  }

  // Looks are the name of a class, or attributes.
  line(points, looks) {
    this.inside.append(svg("path", { d: trace(points.map(([a, b]) => [this.x(a), this.y(b)])), ...attributes(looks) }));
  }

  // What lies between two lines; of each point x, low and high.
  band(points, looks) {
    const up = points.map(([a, , high]) => [this.x(a), this.y(high)]), down = points.map(([a, low]) => [this.x(a), this.y(low)]);
    if (points.length) this.inside.append(svg("path", { d: `${trace([...up, ...down.reverse()])}Z`, ...attributes(looks) }));
  }

  // Levels over intervals, and what lies above them.
  steps(edges, levels, looks, area) {
    const corners = levels.flatMap((level, k) => [[this.x(edges[k]), this.y(level)], [this.x(edges[k + 1]), this.y(level)]]);
    if (corners.length === 0) return;
    const top = this.box.y1 - 6;
    this.inside.append(
      svg("path", { d: `${trace(corners)}L${fix(corners.at(-1)[0])} ${top}L${fix(corners[0][0])} ${top}Z`, class: area }),
      svg("path", { d: trace(corners), class: looks }));
  }

  level(value, looks) {
    this.inside.append(svg("line", { x1: this.box.x0, x2: this.box.x1, y1: this.y(value), y2: this.y(value), class: looks }));
  }

  // A vertical line through the whole chart.
  mark(value, looks) {
    this.inside.append(svg("line", { x1: this.x(value), x2: this.x(value), y1: this.box.y0, y2: this.box.y1, class: looks }));
  }

  dot(a, b, looks, text, radius = 4.5) {
    const [x, y] = [this.x(a), this.y(b)];
    this.inside.append(svg("circle", { cx: fix(x), cy: fix(y), r: radius, ...attributes(looks) }));
    if (text) this.spots.push({ x, y, text });
  }

  spot(a, b, text) {
    this.spots.push({ x: this.x(a), y: this.y(b), text });
  }

  text(a, b, words, { dx = 0, dy = 0, anchor = "start", looks = "" } = {}) {
    const width = 7.2 * words.length, x = this.x(a) + dx;
    const left = anchor === "end" ? x - width : x;
    const isFree = (y) => this.labels.every((one) => left > one.left + one.width || left + width < one.left || Math.abs(y - one.y) > 13);
    const y = [0, 14, -14, 28, -28, 42].map((shift) => this.y(b) + dy + shift).find(isFree) ?? this.y(b) + dy;
    this.labels.push({ left, width, y });
    this.above.append(svg("text", { x, y, "text-anchor": anchor, class: `halo ${looks}` }, words));
  }

  point(event) {
    const [x, y] = pointIn(this.node, event);
    const near = this.spots.map((spot) => [Math.hypot(spot.x - x, spot.y - y), spot]).sort((a, b) => a[0] - b[0])[0];
    if (near && near[0] < 24) tip(near[1].text, event.clientX, event.clientY);
    else tip(null);
  }

  // Tells by a vertical line what `read` finds at the pointer: the nearest value of x and words for it, or nothing.
  follow(read) {
    const cross = svg("line", { class: "cross", y1: this.box.y1, y2: this.box.y0, visibility: "hidden" });
    this.above.append(cross);
    const show = (found, event) => {
      cross.setAttribute("visibility", found ? "visible" : "hidden");
      if (found) for (const end of ["x1", "x2"]) cross.setAttribute(end, this.x(found.value));
      tip(found ? found.words : null, event.clientX, event.clientY);
    };
    this.point = (event) => {
      const [x, y] = pointIn(this.node, event), { x0, x1, y0, y1 } = this.box;
      show(x < x0 || x > x1 || y < y1 || y > y0 ? null : read(x), event);
    };
    this.node.addEventListener("pointerleave", (event) => show(null, event));
  }

  step(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move || this.spots.length === 0) return;
    event.preventDefault();
    const ordered = [...this.spots].sort((a, b) => a.x - b.x);
    this.at = ((this.at ?? (move > 0 ? -1 : 0)) + move + ordered.length) % ordered.length;
    const spot = ordered[this.at];
    tip(spot.text, ...toScreen(this.node, spot.x, spot.y));
  }
}

const attributes = (looks) => (typeof looks === "string" ? { class: looks } : looks);

export const fix = (value) => Math.round(value * 100) / 100;

export function trace(points) {
  let path = "", isPenDown = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) { isPenDown = false; continue; }
    path += `${isPenDown ? "L" : "M"}${fix(x)} ${fix(y)}`;
    isPenDown = true;
  }
  return path;
}

export function range(values, pad = 0.06, log = false) {
  const finite = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (finite.length === 0) return log ? [1, 10] : [0, 1];
  const ends = [Math.min(...finite), Math.max(...finite)];
  let [low, high] = log ? ends.map(Math.log) : ends;
  const room = (high - low) * pad || Math.abs(high) * 0.1 || 0.5;
  [low, high] = [low - room, high + room];
  return log ? [Math.exp(low), Math.exp(high)] : [low, high];
}

function scale({ domain: [low, high], log = false }, from, to) {
  const of = log ? Math.log : (value) => value;
  const [first, last] = [of(low), of(high)];
  const place = (value) => (log && value <= 0 ? NaN : from + ((of(value) - first) / (last - first || 1)) * (to - from));
  place.ticks = (count) => (log ? logTicks(low, high) : linearTicks(low, high, count));
  return place;
}

function linearTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const parts = decades > 3 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
  const every = decades > 8 ? Math.ceil(decades / 6) : 1;
  const found = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k += every)
    for (const part of parts) if (part * 10 ** k >= low && part * 10 ** k <= high) found.push(Number((part * 10 ** k).toPrecision(6)));
  return found.length > 1 ? found : linearTicks(low, high, 4);
}
