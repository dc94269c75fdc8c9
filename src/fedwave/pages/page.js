// Draws the charts of the page: curves with bands, or bars. Hover shows the numbers; a legend entry switches a series.
import { Chart, range } from "./chart.js";
import { digits, el, find, svg, tip } from "./dom.js";

const SIZE = { width: 360, height: 250 };
const MARGIN_OF = { line: { left: 52, right: 10, top: 24, bottom: 40 }, bars: { left: 12, right: 10, top: 24, bottom: 40 } }; // dots have that of bars
const ROW = 34; // height of a bar with its name
const FEW = 12; // values of x that each get a dot and a label
const MANY = 4; // series whose bands would cover each other
const SPAN = 0.1; // of an axis, as a share of its values
const NEAR = 40; // how far from the pointer a number is still told

// Colours are made for a white page: on a dark one black becomes white, the others lighter.
const dark = matchMedia("(prefers-color-scheme: dark)");
const LIGHTER = { "#000000": "#e4e8ec", "#0072B2": "#7b8dff", "#D55E00": "#ff8a3c", "#009E73": "#2cc79b" };
const paint = (colour) => (dark.matches && LIGHTER[colour]) || colour;

const number = (value) => digits(value, 3);
const usable = (values, log) => values.filter((value) => value !== null && (!log || value > 0));
const floor = (panel, s, i) => (panel.has_log_y ? Math.max(s.low[i], 0.05 * s.mean[i]) : s.low[i]);
const told = (s, i) => `${s.name}: ${number(s.mean[i])}${s.seeds > 1 && s.high[i] !== s.mean[i] ? ` ± ${number(s.high[i] - s.mean[i])}` : ""}`;

function entry(s, i) {
  const swatch = el("i");
  swatch.style.background = paint(s.colour);
  return el("div", {}, swatch, told(s, i));
}

// Wide intervals must not flatten the curves: they get the means' range above and below, and are cut there. An axis is
// never shorter than a tenth of its values: a change of 0.1 % is no cliff.
function yDomain(panel, shown) {
  const means = usable(shown.flatMap((s) => [...s.mean, ...s.runs.flatMap(([, y]) => y)]), panel.has_log_y);
  if (panel.has_log_y) return range(means, 0.04, true);
  if (panel.mark_y !== null) means.push(panel.mark_y);
  const edges = [...means, ...usable(shown.flatMap((s) => [...s.low, ...s.high]))];
  const more = Math.max(...means) - Math.min(...means) || Infinity;
  let low = Math.max(Math.min(...edges), Math.min(...means) - more), high = Math.min(Math.max(...edges), Math.max(...means) + more);
  const short = SPAN * Math.max(...means.map(Math.abs)) - (high - low);
  if (short > 0) [low, high] = [low - short / 2, high + short / 2];
  return range([low, high], 0.04);
}

function drawLines(panel, shown) {
  const xs = usable(panel.series.flatMap((s) => [...s.x, ...s.runs.flatMap(([x]) => x)]), panel.has_log_x);
  const own = [...new Set(xs)].sort((a, b) => a - b);
  const isFew = own.length > 0 && own.length <= FEW;
  const chart = new Chart({ ...SIZE, margin: MARGIN_OF.line, label: `${panel.title} ${panel.y_label} by ${panel.x_label}`, title: panel.title || panel.y_label, corner: panel.title ? panel.y_label : "",
    x: { label: panel.x_label, domain: range(xs, 0.02, panel.has_log_x), log: panel.has_log_x, format: number, values: isFew ? own : undefined },
    y: { domain: yDomain(panel, shown), log: panel.has_log_y, format: number, count: 6 } });
  if (panel.mark_x !== null) chart.mark(panel.mark_x, "cross");
  if (panel.mark_y !== null) chart.level(panel.mark_y, "axis");
  for (const s of shown) {
    const colour = paint(s.colour);
    const at = [...s.x.keys()].filter((i) => s.mean[i] !== null && (!panel.has_log_x || s.x[i] > 0) && (!panel.has_log_y || s.mean[i] > 0));
    if (s.seeds > 1) chart.band(at.map((i) => [s.x[i], floor(panel, s, i), s.high[i]]), { fill: colour, opacity: shown.length > MANY ? 0.07 : 0.13 });
    for (const [x, y] of s.runs) chart.line(x.map((one, i) => [one, y[i]]), { class: "line run", stroke: colour });
    chart.line(at.map((i) => [s.x[i], s.mean[i]]), { class: "line", stroke: colour, "stroke-dasharray": s.is_dashed ? "5 4" : null });
    for (const i of at) {
      if (isFew) chart.dot(s.x[i], s.mean[i], { fill: colour }, null, 2.6);
      chart.spot(s.x[i], s.mean[i], `${panel.x_label} ${number(s.x[i])}\n${told(s, i)}`);
    }
  }
  chart.follow((pointer) => {
    const away = (s, i) => Math.abs(chart.x(s.x[i]) - pointer);
    const near = shown.map((s) => [s, [...s.x.keys()].filter((i) => s.mean[i] !== null).reduce((best, i) => (best < 0 || away(s, i) < away(s, best) ? i : best), -1)])
      .filter(([s, i]) => i >= 0 && away(s, i) < NEAR);
    if (near.length === 0) return null;
    const [first, at] = near.reduce((best, one) => (away(...one) < away(...best) ? one : best));
    return { value: first.x[at], words: [el("b", {}, `${panel.x_label} ${number(first.x[at])}`), ...near.map(([s, i]) => entry(s, i))] };
  });
  return chart.node;
}

// A logarithmic axis has no zero for a bar to begin at: there it is a dot.
function drawBars(panel, shown) {
  const log = panel.has_log_y, isDotted = log || panel.kind === "dots", values = usable(shown.flatMap((s) => [s.mean[0], s.high[0]]), log);
  const few = panel.kind === "dots" ? yDomain(panel, shown) : [log ? Math.min(...values) / 2 : Math.min(0, ...values), Math.max(...values)];
  const ends = values.length ? few : [log ? 1 : 0, 10];
  const height = Math.min(SIZE.height, 64 + ROW * Math.max(shown.length, 2));
  const chart = new Chart({ ...SIZE, height, margin: MARGIN_OF.bars, label: `${panel.title} ${panel.x_label}`, title: panel.title || panel.y_label,
    x: { label: panel.x_label, domain: ends[0] < ends[1] ? ends : range(ends, 0, log), log, format: number }, y: { domain: [1, 0], values: [] } });
  if (panel.mark_y !== null) chart.mark(panel.mark_y, "cross");
  const { x0, y0, y1 } = chart.box, step = Math.min(ROW, (y0 - y1) / Math.max(shown.length, 1));
  shown.forEach((s, k) => {
    const top = y1 + k * step, colour = paint(s.colour), end = chart.x(s.mean[0]);
    const bar = isDotted ? svg("circle", { cx: end, cy: top + step * 0.75, r: 4.5, fill: s.is_dashed ? "none" : colour, stroke: colour, "stroke-width": 1.6 }) : svg("rect", { x: x0, y: top + step * 0.55, width: Math.max(end - x0, 1) || 1, height: step * 0.4, fill: colour, opacity: s.is_dashed ? 0.5 : 0.9, stroke: s.is_dashed ? colour : null, "stroke-dasharray": s.is_dashed ? "4 3" : null });
    chart.inside.append(bar, svg("text", { class: "name", x: x0 + 3, y: top + step * 0.4 }, s.name));
    if (s.high[0] !== s.mean[0]) chart.inside.append(svg("line", { class: "axis", x1: Math.max(chart.x(floor(panel, s, 0)), x0), x2: chart.x(s.high[0]), y1: top + step * 0.75, y2: top + step * 0.75, "stroke-width": 1.4 }));
    chart.spots.push({ x: Math.max(end, x0) || x0, y: top + step * 0.75, text: told(s, 0) });
    bar.addEventListener("pointermove", (event) => { event.stopPropagation(); tip([entry(s, 0)], event.clientX, event.clientY); });
    bar.addEventListener("pointerleave", () => tip(null));
  });
  return chart.node;
}

const charts = JSON.parse(find("charts").textContent);
for (const place of document.querySelectorAll("[data-chart]")) {
  const { panels } = charts[place.dataset.chart], off = new Set();
  const looks = new Map(panels.flatMap((panel) => panel.series).map((s) => [s.name, s]));
  const legend = el("div", { class: "legend" }), grid = el("div", { class: "panels" });
  const draw = () => {
    grid.replaceChildren(...panels.map((panel) => (panel.kind === "line" ? drawLines : drawBars)(panel, panel.series.filter((s) => !off.has(s.name)))));
    for (const [k, button] of [...legend.children].entries()) button.setAttribute("aria-pressed", String(!off.has([...looks.keys()][k])));
  };
  const all = () => {
    legend.replaceChildren(...[...looks].map(([name, s]) => el("button", { type: "button", title: "Show or hide this scheme", onclick: () => { off.has(name) ? off.delete(name) : off.add(name); draw(); } },
      svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: paint(s.colour), "stroke-width": 3, "stroke-dasharray": s.is_dashed ? "5 3" : null })), name)));
    draw();
  };
  all();
  dark.addEventListener("change", all);
  place.append(...(looks.size > 1 ? [legend] : []), grid);
}
