// Draws the charts of the page: curves with bands, or bars. Hover shows the numbers; a legend entry switches a series.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const tip = document.getElementById("tip");
  const NS = "http://www.w3.org/2000/svg";
  const W = 360, H = 250, LEFT = 52, RIGHT = 10, TOP = 24, BOTTOM = 40;

  const make = (name, attributes, parent, text) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const short = (value) => {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (size >= 10000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
    return String(Number(value.toPrecision(size >= 1000 ? 4 : 3)));
  };
  // Colours are made for a white page: on a dark one black becomes white, the others lighter.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const LIGHTER = { "#000000": "#e4e8ec", "#0072B2": "#7b8dff", "#D55E00": "#ff8a3c", "#009E73": "#2cc79b" };
  const paint = (colour) => (dark.matches && LIGHTER[colour]) || colour;

  const scale = (values, isLog, from, to, pad) => {
    let low = Math.min(...values), high = Math.max(...values);
    if (!isFinite(low)) { low = isLog ? 1 : 0; high = 10; }
    const go = isLog ? Math.log10 : (v) => v;
    let a = go(low), b = go(high);
    if (a === b) { a -= isLog ? 0.3 : Math.abs(a) * 0.1 || 1; b += isLog ? 0.3 : Math.abs(b) * 0.1 || 1; }
    const room = pad * (b - a); a -= room; b += room;
    const at = (v) => from + ((go(v) - a) / (b - a)) * (to - from);
    at.low = a; at.high = b; at.isLog = isLog;
    return at;
  };
  const ticks = (at, wanted) => {
    if (at.isLog) {
      const found = [], span = at.high - at.low;
      const steps = span > 3 ? [1] : span > 1.2 ? [1, 3] : [1, 2, 3, 5, 7];
      const every = span > 6 ? 2 : 1;
      for (let e = Math.floor(at.low); e <= at.high; e += every) for (const s of steps) {
        const v = s * 10 ** e, l = Math.log10(v);
        if (l >= at.low && l <= at.high) found.push(v);
      }
      return found;
    }
    const raw = (at.high - at.low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw);
    const found = [];
    for (let v = Math.ceil(at.low / step) * step; v <= at.high + 1e-12 * step; v += step) found.push(Math.abs(v) < step * 1e-9 ? 0 : v);
    return found;
  };
  let count = 0;
  // Wide intervals must not flatten the curves: they get half of the means' range above and below, and are cut there.
  const room = (shown, ys, panel) => {
    const means = positive(shown.flatMap((s) => s.mean), panel.has_log_y);
    const low = Math.min(...means), high = Math.max(...means), more = 0.5 * (high - low);
    if (panel.has_log_y || !(more > 0)) return ys;
    return [Math.max(Math.min(...ys), low - more), Math.min(Math.max(...ys), high + more)];
  };
  const positive = (values, isLog) => values.filter((v) => v !== null && (!isLog || v > 0));
  const showTip = (event, html) => {
    tip.innerHTML = html; tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6)) + "px";
    const above = event.clientY + 16 + box.height > innerHeight;
    tip.style.top = Math.max(4, above ? event.clientY - box.height - 12 : event.clientY + 16) + "px";
  };
  const hideTip = () => { tip.hidden = true; };
  const safe = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const figure = (s, i) => {
    const spread = s.seeds > 1 && s.high[i] !== s.mean[i] ? " ± " + short(s.high[i] - s.mean[i]) : "";
    return `<span><i style="background:${paint(s.colour)}"></i>${safe(s.name)}: ${short(s.mean[i])}${spread}</span><br>`;
  };

  const drawLines = (panel, off) => {
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${panel.title} ${panel.y_label} by ${panel.x_label}` });
    const shown = panel.series.filter((s) => !off.has(s.name));
    const xs = positive(panel.series.flatMap((s) => s.x), panel.has_log_x);
    const ys = positive(shown.flatMap((s) => [...s.mean, ...(panel.has_log_y ? [] : [...s.low, ...s.high])]), panel.has_log_y);
    const x = scale(xs, panel.has_log_x, LEFT, W - RIGHT, 0.02);
    const y = scale(room(shown, ys, panel), panel.has_log_y, H - BOTTOM, TOP, 0.04);
    const clip = `c${++count}`;
    make("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }, make("clipPath", { id: clip }, svg));
    for (const v of ticks(y, 5)) {
      make("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(v), y2: y(v) }, svg);
      make("text", { class: "tick", x: LEFT - 6, y: y(v) + 3.5, "text-anchor": "end" }, svg, short(v));
    }
    const own = [...new Set(xs)].sort((a, b) => a - b);
    let last = -99;
    for (const v of own.length <= 12 ? own : ticks(x, 5)) {
      if (x(v) - last < 24) continue;
      last = x(v);
      make("text", { class: "tick", x: x(v), y: H - BOTTOM + 15, "text-anchor": "middle" }, svg, short(v));
    }
    make("line", { class: "axis", x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM }, svg);
    if (panel.mark_x !== null) make("line", { class: "cross", x1: x(panel.mark_x), x2: x(panel.mark_x), y1: TOP, y2: H - BOTTOM }, svg);
    const floor = (v, s, i) => (panel.has_log_y ? Math.max(v, 0.05 * s.mean[i]) : v);
    for (const s of shown) {
      const at = s.x.map((_, i) => i).filter((i) => s.mean[i] !== null && (!panel.has_log_x || s.x[i] > 0) && (!panel.has_log_y || s.mean[i] > 0));
      if (s.seeds > 1) {
        const up = at.map((i) => `${x(s.x[i])},${y(s.high[i])}`), down = at.map((i) => `${x(s.x[i])},${y(floor(s.low[i], s, i))}`).reverse();
        make("polygon", { points: [...up, ...down].join(" "), fill: paint(s.colour), opacity: shown.length > 4 ? 0.07 : 0.13, "clip-path": `url(#${clip})` }, svg);
      }
      const dash = s.is_dashed ? "5 4" : "none";
      make("polyline", { points: at.map((i) => `${x(s.x[i])},${y(s.mean[i])}`).join(" "), fill: "none", stroke: paint(s.colour), "stroke-width": 1.8, "stroke-dasharray": dash }, svg);
      if (own.length <= 12) for (const i of at) make("circle", { cx: x(s.x[i]), cy: y(s.mean[i]), r: 2.6, fill: paint(s.colour) }, svg);
    }
    const cross = make("line", { class: "cross", y1: TOP, y2: H - BOTTOM, visibility: "hidden" }, svg);
    labels(svg, panel);
    const cover = make("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM, fill: "transparent" }, svg);
    cover.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * W;
      let best = null, text = "";
      for (const s of shown) {
        let near = -1;
        s.x.forEach((v, i) => { if (s.mean[i] !== null && (near < 0 || Math.abs(x(v) - at) < Math.abs(x(s.x[near]) - at))) near = i; });
        if (near < 0) continue;
        if (best === null || Math.abs(x(s.x[near]) - at) < Math.abs(x(best) - at)) best = s.x[near];
        if (Math.abs(x(s.x[near]) - at) < 40) text += figure(s, near);
      }
      if (best === null || !text) return hideTip();
      cross.setAttribute("x1", x(best)); cross.setAttribute("x2", x(best)); cross.setAttribute("visibility", "visible");
      showTip(event, `<b>${safe(panel.x_label)} ${short(best)}</b>${text}`);
    });
    cover.addEventListener("pointerleave", () => { hideTip(); cross.setAttribute("visibility", "hidden"); });
    return svg;
  };
  const drawBars = (panel, off) => {
    const shown = panel.series.filter((s) => !off.has(s.name));
    const step = Math.min(30, (H - TOP - BOTTOM) / Math.max(shown.length, 1)), left = LEFT - 40;
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${panel.title} ${panel.x_label}` });
    const values = positive(shown.flatMap((s) => [s.mean[0], s.high[0]]), panel.has_log_y);
    const x = scale(panel.has_log_y ? [...values, Math.min(...values) / 2] : [0, ...values], panel.has_log_y, left, W - RIGHT, 0);
    for (const v of ticks(x, 5)) {
      make("line", { class: "grid", x1: x(v), x2: x(v), y1: TOP, y2: H - BOTTOM }, svg);
      make("text", { class: "tick", x: x(v), y: H - BOTTOM + 15, "text-anchor": "middle" }, svg, short(v));
    }
    shown.forEach((s, i) => {
      const top = TOP + i * step, end = x(panel.has_log_y ? Math.max(s.mean[0], 1e-12) : s.mean[0]);
      const bar = make("rect", { x: left, y: top + step * 0.55, width: Math.max(end - left, 1), height: step * 0.4, fill: paint(s.colour), opacity: s.is_dashed ? 0.5 : 0.9 }, svg);
      if (s.is_dashed) { bar.setAttribute("stroke", paint(s.colour)); bar.setAttribute("stroke-dasharray", "4 3"); }
      if (s.high[0] !== s.mean[0]) {
        const low = x(panel.has_log_y ? Math.max(s.low[0], 0.05 * s.mean[0]) : s.low[0]);
        make("line", { class: "axis", x1: Math.max(low, left), x2: x(s.high[0]), y1: top + step * 0.75, y2: top + step * 0.75, "stroke-width": 1.4 }, svg);
      }
      make("text", { class: "name", x: left + 3, y: top + step * 0.46 }, svg, s.name);
      bar.addEventListener("pointermove", (event) => showTip(event, figure(s, 0)));
      bar.addEventListener("pointerleave", hideTip);
    });
    make("line", { class: "axis", x1: left, x2: left, y1: TOP, y2: H - BOTTOM }, svg);
    labels(svg, panel);
    return svg;
  };
  const labels = (svg, panel) => {
    make("text", { class: "title", x: LEFT - 40, y: 13 }, svg, panel.title || panel.y_label);
    make("text", { x: (LEFT + W - RIGHT) / 2, y: H - 6, "text-anchor": "middle" }, svg, panel.x_label);
    if (panel.kind === "line" && panel.title) make("text", { x: W - RIGHT, y: 13, "text-anchor": "end", class: "tick" }, svg, panel.y_label);
  };

  for (const place of document.querySelectorAll("[data-chart]")) {
    const chart = charts[place.dataset.chart], off = new Set();
    const legend = document.createElement("div"), grid = document.createElement("div");
    legend.className = "legend"; grid.className = "panels";
    const draw = () => grid.replaceChildren(...chart.panels.map((p) => (p.kind === "bars" ? drawBars : drawLines)(p, off)));
    const looks = new Map(chart.panels.flatMap((p) => p.series).map((s) => [s.name, s]));
    const key = () => legend.replaceChildren(...[...looks].map(([name, s]) => {
      const button = document.createElement("button");
      button.type = "button"; button.title = "Show or hide this scheme";
      button.setAttribute("aria-pressed", String(!off.has(name)));
      const mark = make("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" });
      make("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: paint(s.colour), "stroke-width": 3, "stroke-dasharray": s.is_dashed ? "5 3" : "none" }, mark);
      button.append(mark, name);
      button.addEventListener("click", () => {
        off.has(name) ? off.delete(name) : off.add(name);
        button.setAttribute("aria-pressed", String(!off.has(name)));
        draw();
      });
      return button;
    }));
    const all = () => { key(); draw(); };
    all(); dark.addEventListener("change", all);
    place.append(...(looks.size > 1 ? [legend] : []), grid);
  }
})();
