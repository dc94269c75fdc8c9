// The cell tab: asks for the optimum first, then for what takes longer, and starts over when a slider moves.
import { ACCESSES, SIMPLE, accessTable, bestSimple, lossText } from "./accesses.js";
import { ask, showError } from "./ask.js";
import { Chart, range } from "./chart.js";
import { Controls } from "./controls.js";
import { digits, el, find, si, svg } from "./dom.js";
import { CellMap } from "./map.js";
import { saveButtons, saveText } from "./save.js";
import { SHARES, schedulePicture, usedShare } from "./schedule.js";
import { Tries } from "./tries.js";
import { word } from "./words.js";

const NAMES = {
  optimal: "URAL (optimal)", threshold: "Threshold", "value-rate": "Value-rate", "proportional-fair": "Proportional fair", ives: "URAL (IVES)",
  "ives-multistart": "IVES, many starts", greedy: "Greedy", random: "Random", chen2020: "Chen 2020", "fedl-power": "FEDL's powers", "equal-split": "Equal split",
};
const HEADINGS = { "one-block": "Who uploads, and on which block", blocks: "Who uploads, and on which blocks", "shared-band": "Who uploads, and over what share of the band", tdma: "Who uploads, and when" };
const MANY_PAIRS = 200_000; // above, methods and points of the front are asked for one by one
const RATIOS = [0.01, 0.0178, 0.0316, 0.0562, 0.1, 0.178, 0.316, 0.562, 1, 1.78, 3.16, 5.62, 10, 17.8, 31.6, 56.2, 100];
const FEW_RATIOS = [1, 0.01, 0.1, 10, 100];

export class CellTab {
  constructor(start) {
    this.start = start;
    this.controls = new Controls(find("controls"), () => this.update());
    this.shown = "optimal";
    this.cards = {};
    this.tries = new Tries(find("try"), { read: () => ({ view: this.controls.view, optimal: this.methods.optimal, unit: this.unit }), apply: (changes) => this.controls.apply(changes) });
    find("cell-cards").replaceChildren(
      el("div", { class: "column-of-cards" },
        this.card("map", "Who uploads, and on which block", 1, "who-uploads"),
        this.card("schedule", "The band over time", 4, "band-over-time"),
        this.card("curve", "Objective over delay: where IVES stops", 6, "objective-over-delay")),
      el("div", { class: "column-of-cards" },
        this.card("split", "Objective: U − η₁E − η₂T", 2, "objective"),
        this.card("methods", "Every method on this problem", 3),
        this.card("accesses", "The same cell, shared in every way", 5),
        this.card("front", "Energy against delay", 7, "pareto-front")));
  }

  // The place is that of a card where all stand in one column.
  card(key, title, place, file = null) {
    const body = el("div", { class: "body" }), note = el("p", { class: "note" }), heading = el("h2", {}, title);
    this.cards[key] = { body, note, heading };
    const save = file ? saveButtons(file, () => body.querySelector("svg"), () => this.toml ?? "") : null;
    return el("section", { class: `card place-${place}`, id: `card-${key}`, "aria-label": title }, el("div", { class: "head" }, heading, save), note, body);
  }

  async open(source) {
    document.body.dataset.state = "busy";
    try {
      const answer = await ask("defaults", { source });
      this.source = source;
      this.about = answer;
      this.mapKey = null;
      this.controls.build({ sources: this.start.sources, source, view: answer.view, about: answer, onSource: (name) => this.open(name), onExport: (kind) => this.export(kind), onReset: () => this.open(source) });
      this.tries.offer(answer.refusals);
      this.map = new CellMap({ units: !answer.is_normalised });
      this.cards.map.body.replaceChildren(this.map.node);
      await this.update();
    } catch (error) {
      showError(error);
      find("source")?.replaceChildren(...this.start.sources.map((name) => el("option", { value: name, selected: name === this.source }, name)));
      document.body.dataset.state = "ready";
    }
  }

  get unit() { return (name) => (this.about.is_normalised ? "" : name); }
  get question() { return { source: this.source, view: { ...this.controls.view } }; }

  // One question at a time; what moved meanwhile is asked next.
  async update() {
    this.isDirty = true;
    if (this.isBusy) return;
    this.isBusy = true;
    document.body.dataset.state = "busy";
    while (this.isDirty) {
      this.isDirty = false;
      try {
        await this.answer(this.question);
        showError(null);
      } catch (error) {
        showError(error);
      }
    }
    this.isBusy = false;
    document.body.dataset.state = "ready";
  }

  async answer(question) {
    const began = performance.now();
    const answer = await ask("cell", { ...question, map_key: this.mapKey });
    if (answer.map) {
      this.mapKey = answer.map_key;
      this.places = answer.map;
      this.map.setPlaces(answer.map);
    }
    this.methods = { optimal: answer.optimal };
    this.warnings = answer.warnings;
    this.drawMap();
    this.drawSplit();
    find("status").textContent = `${answer.optimal.num_selected} of ${digits(this.places.num_devices, 6)} upload · ${proven(answer.optimal)} · answered in ${Math.round(performance.now() - began)} ms`;
    this.drawSchedule();
    for (const key of ["methods", "accesses", "curve", "front"]) this.cards[key].body.classList.add("stale");
    const { num_devices: n, num_blocks: m } = question.view;
    const isLarge = n * m > MANY_PAIRS;
    const others = this.start.methods[question.view.access].filter((name) => name !== "optimal");
    for (const names of isLarge ? others.map((name) => [name]) : [others]) {
      if (this.isDirty) return;
      Object.assign(this.methods, await ask("methods", { ...question, methods: names }));
      this.drawMethods();
    }
    if (this.shown !== "optimal") { this.drawMap(); this.drawSplit(); this.drawSchedule(); }
    const hasCurve = question.view.access === "one-block" && !question.view.max_uploads; // IVES and the matching at a delay know no other
    find("card-curve").hidden = !hasCurve;
    if (this.isDirty) return;
    if (hasCurve) this.drawCurve(await ask("curve", question));
    await this.answerAccesses(question, isLarge);
    await this.answerFront(question, isLarge);
    if (!this.isDirty) this.toml = (await ask("export", { ...question, kind: "toml" })).text;
  }

  // The optimum, and the simple rules unless that takes long, of every access that the cell can be shared by.
  async answerAccesses(question, isLarge) {
    const { access: chosen } = question.view;
    const found = { [chosen]: this.methods };
    for (const access of Object.keys(ACCESSES)) {
      this.drawAccesses(found, chosen);
      if (this.isDirty) return;
      if (found[access] || this.about.refusals[access]) continue;
      const view = { ...question.view, access, work_conserving: false };
      found[access] = await ask("methods", { source: question.source, view, methods: isLarge ? ["optimal"] : ["optimal", ...SIMPLE] });
    }
    this.drawAccesses(found, chosen);
  }

  drawAccesses(found, chosen) {
    const { body, note } = this.cards.accesses;
    body.classList.remove("stale");
    body.replaceChildren(accessTable({ found, refusals: this.about.refusals, chosen, unit: this.unit, onChoose: (access) => this.controls.choose(access) }));
    const alone = found["one-block"]?.optimal.objective, best = Object.entries(found).reduce((one, other) => (other[1].optimal.objective > one[1].optimal.objective ? other : one));
    const gain = alone > 0 && best[0] !== "one-block" ? `${ACCESSES[best[0]]} is worth ${digits(best[1].optimal.objective / alone, 3)} times one block each here. ` : "";
    note.textContent = `${gain}Choose a row to see it.`;
  }

  drawSchedule() {
    const found = this.allocation, { body, note } = this.cards.schedule, { access, num_blocks: numBlocks } = this.controls.view;
    if (found.num_selected === 0) { body.replaceChildren(); note.textContent = "Nobody uploads."; return; }
    body.replaceChildren(schedulePicture({ schedule: found.schedule, method: found.method, numBlocks, units: !this.about.is_normalised }));
    const isHanded = found.schedule.device.length > found.num_selected && this.controls.view.work_conserving;
    note.textContent = `${NAMES[found.method] ?? found.method}: ${SHARES[access]}. ${digits(100 * usedShare(found.schedule, numBlocks), 3)} % of the band's time is in use until the last upload ends.${isHanded ? " Pale: blocks that others have left." : ""}`;
  }

  async answerFront(question, isLarge) {
    if (question.view.energy_weight === 0 || question.view.delay_weight === 0) {
      this.cards.front.note.textContent = "The front needs both weights above 0.";
      this.cards.front.body.replaceChildren();
      return;
    }
    const rows = [];
    for (const ratios of isLarge ? FEW_RATIOS.map((one) => [one]) : [RATIOS]) {
      if (this.isDirty) return;
      const front = await ask("front", { ...question, ratios });
      ratios.forEach((ratio, k) => rows.push({ ratio, energy: front.energy_j[k], delay: front.delay_s[k], gain: front.contribution[k], count: front.num_selected[k], weights: [front.energy_weight[k], front.delay_weight[k]] }));
      this.drawFront(rows.toSorted((a, b) => a.ratio - b.ratio));
    }
  }

  get allocation() {
    return this.methods[this.shown] ?? this.methods.optimal;
  }

  drawMap() {
    const found = this.allocation;
    this.map.setUploads(found.uploads, this.places.noise_w, found.method, { access: this.controls.view.access });
    this.cards.map.heading.textContent = HEADINGS[this.controls.view.access];
    this.cards.map.note.textContent = [`${NAMES[found.method] ?? found.method}: ${found.num_selected} of ${digits(this.places.num_devices, 6)} devices upload within ${si(found.upload_delay_s, this.unit("s"))}`, found.reason].filter(Boolean).join("; ") + ".";
    this.cards.map.body.querySelectorAll(".warning").forEach((node) => node.remove());
    this.cards.map.body.append(...this.warnings.map((words) => el("p", { class: "warning" }, words)));
  }

  drawSplit() {
    const found = this.allocation, { unit } = this;
    const [gain, cpu, radio, cpuTime, radioTime] = found.terms;
    const rows = [
      ["U", "contribution", gain.worth, "gain", [[gain.worth, `U = ${digits(gain.worth)}`]]],
      ["−η₁E", si(cpu.value + radio.value, unit("J")), cpu.worth + radio.worth, "cost-e", [[radio.worth, `upload: ${si(radio.value, unit("J"))}`], [cpu.worth, `computing: ${si(cpu.value, unit("J"))}`]]],
      ["−η₂T", si(cpuTime.value + radioTime.value, unit("s")), cpuTime.worth + radioTime.worth, "cost-t", [[radioTime.worth, `upload: ${si(radioTime.value, unit("s"))}`], [cpuTime.worth, `computing: ${si(cpuTime.value, unit("s"))}`]]],
    ];
    const width = 460, height = 176, left = 48, right = 84;
    let level = 0;
    const levels = [0];
    for (const row of rows) levels.push((level += row[2] ?? 0));
    const low = Math.min(...levels), high = Math.max(...levels, low + 1e-12);
    const at = (value) => left + ((value - low) / (high - low)) * (width - left - right);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Objective ${digits(found.objective)}` });
    picture.append(svg("line", { class: "axis", x1: at(0), x2: at(0), y1: 6, y2: height - 6 }));
    level = 0;
    rows.forEach(([name, amount, worth, looks, parts], row) => {
      const y = 12 + row * 40;
      picture.append(svg("text", { x: left - 10, y: y + 18, "text-anchor": "end", class: "strong", ...word(name.replace("−", "")) }, name));
      for (const [part, words] of parts) {
        const [a, b] = [at(level), at(level + part)].sort((one, other) => one - other);
        picture.append(svg("rect", { x: a, y, width: Math.max(b - a, 1), height: 27, rx: 3, class: `${looks} ${words.startsWith("computing") ? "light" : ""}` }, svg("title", {}, words)));
        level += part;
      }
      picture.append(svg("text", { x: width - right + 12, y: y + 12, class: "strong" }, `${worth >= 0 ? "+" : ""}${digits(worth)}`), svg("text", { x: width - right + 12, y: y + 26, class: "tiny" }, amount));
    });
    const [a, b] = [at(0), at(level)].sort((one, other) => one - other);
    picture.append(svg("text", { x: left - 10, y: 152, "text-anchor": "end", class: "strong", ...word("objective") }, "sum"), svg("rect", { x: a, y: 134, width: Math.max(b - a, 1), height: 27, rx: 3, class: "sum" }), svg("text", { x: width - right + 12, y: 152, class: "strong" }, digits(found.objective)));
    this.cards.split.body.replaceChildren(picture);
    this.cards.split.note.textContent = `${NAMES[found.method] ?? found.method}: ${digits(found.objective, 6)}, ${proven(found)}. Pale: computing.`;
    document.body.dataset.objective = found.objective;
  }

  drawMethods() {
    const head = ["method", "objective", "U", "η₁E", "η₂T", "uploads"];
    const rows = this.start.methods[this.controls.view.access].map((name) => {
      const found = this.methods[name];
      if (!found) return el("tr", {}, el("td", {}, el("span", { class: `dot b-${name}` }), NAMES[name] ?? name), ...Array(5).fill(0).map(() => el("td", {}, "…")));
      const [gain, cpu, radio, cpuTime, radioTime] = found.terms;
      const choose = () => { this.shown = name; this.drawMap(); this.drawSplit(); this.drawSchedule(); this.drawMethods(); find("card-methods").querySelector('[aria-pressed="true"]').focus(); };
      return el("tr", { class: "choice", tabindex: 0, role: "button", "aria-pressed": String(name === this.shown), "data-method": name, title: found.reason || "Show this on the map", onclick: choose,
        onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } },
      el("td", {}, el("span", { class: `dot b-${name}` }), NAMES[name] ?? name, el("span", { class: "sub" }, `${found.status}, ${digits(1e3 * found.seconds, 2)} ms`)),
      ...[found.objective, gain.worth, -(cpu.worth + radio.worth), -(cpuTime.worth + radioTime.worth)].map((value) => el("td", {}, digits(value))),
      el("td", {}, found.num_selected));
    });
    this.cards.methods.body.classList.remove("stale");
    this.cards.methods.body.replaceChildren(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head.map((words) => el("th", words === "method" ? {} : { ...word(words), tabindex: 0 }, words)))), el("tbody", {}, rows))));
    this.cards.methods.note.textContent = `${simplest(this.methods)}Choose a row to see it on the map.`;
  }

  drawCurve(curve) {
    const { body, note } = this.cards.curve;
    body.classList.remove("stale");
    if (curve.delay_s.length === 0) { body.replaceChildren(); note.textContent = "Nobody can upload."; return; }
    const steps = curve.steps.filter((step) => step.delay_s > 0 && step.objective !== null);
    const last = steps.at(-1);
    const top = curve.upper_bound, values = [curve.optimum.objective, top, last?.objective, steps[0]?.objective].filter((one) => Number.isFinite(one));
    const reach = Math.max(top - Math.min(...values), 0.15 * Math.abs(top), 1e-6);
    const chart = new Chart({ width: 480, height: 290, label: "Objective over the upload delay",
      x: { word: "δ", label: `upload delay δ${this.about.is_normalised ? "" : " [s]"}`, domain: [curve.delay_s[0], Math.max(curve.delay_s.at(-1), last?.delay_s ?? 0)], log: true },
      y: { label: "objective", domain: [top - 1.25 * reach, top + 0.18 * reach] } });
    chart.steps(curve.delay_s, curve.bound, "bound", "ruled-out");
    chart.level(top, "proven");
    chart.line(curve.delay_s.map((delay, k) => [delay, curve.objective[k]]), "curve");
    curve.delay_s.forEach((delay, k) => chart.spot(delay, curve.objective[k], `δ = ${si(delay, this.unit("s"))}\nbest matching: ${digits(curve.objective[k], 5)}`));
    chart.text(curve.delay_s[0], top, `proven: nothing is better than ${digits(top, 5)}`, { dx: 8, dy: -7, looks: "f-optimal strong" });
    if (steps.length) {
      const from = curve.start_s ? [[Math.min(curve.start_s, curve.delay_s.at(-1)), nearest(curve, curve.start_s)]] : [];
      chart.line([...from, ...steps.map((step) => [step.delay_s, step.objective])], "path");
      from.forEach(([delay, value]) => chart.dot(delay, value, "f-ives light", `IVES starts from the slowest device, δ = ${si(curve.start_s, this.unit("s"))}`, 3.5));
      steps.forEach((step, k) => chart.dot(step.delay_s, step.objective, "f-ives", `IVES after ${k + 1} iteration${k ? "s" : ""}\nδ = ${si(step.delay_s, this.unit("s"))}\nobjective ${digits(step.objective, 5)}`));
      const isRight = chart.x(last.delay_s) > 280;
      chart.text(last.delay_s, last.objective, `IVES stops here: ${digits(last.objective, 4)}`, { dx: isRight ? -9 : 9, dy: 20, anchor: isRight ? "end" : "start", looks: "f-ives strong" });
    }
    chart.dot(curve.optimum.delay_s, curve.optimum.objective, "here", `certified optimum\nδ = ${si(curve.optimum.delay_s, this.unit("s"))}\nobjective ${digits(curve.optimum.objective, 5)}`, 6);
    body.replaceChildren(chart.node);
    note.textContent = `Black: the best matching at each delay. Green steps: what no allocation in that stretch can exceed. ${verdict(curve, last, this.methods.ives)}`;
  }

  // As `fedwave allocate --pareto --plot` draws it: energy and time, a dot for every pair of weights, coloured by U.
  drawFront(all) {
    const { body, note } = this.cards.front;
    const rows = all.some((row) => row.count > 0) ? all.filter((row) => row.count > 0) : all; // nobody uploading is no trade-off
    body.classList.remove("stale");
    const { unit } = this, isLog = (values) => Math.min(...values) > 0 && Math.max(...values) > 20 * Math.min(...values);
    const [energies, delays, gains] = ["energy", "delay", "gain"].map((name) => rows.map((row) => row[name]));
    const axis = (label, values) => ({ label, domain: range(values, 0.14, isLog(values)), log: isLog(values), format: (value) => digits(value, 3) });
    const chart = new Chart({ width: 480, height: 300, margin: { left: 58, right: 78, top: 14, bottom: 38 }, label: "Energy against delay for many weights, coloured by U",
      x: axis(`energy E of the round${unit(" [J]")}`, energies), y: axis(`time T of the round${unit(" [s]")}`, delays) });
    const low = Math.min(...gains), high = Math.max(...gains), colour = (gain) => viridis(high > low ? (gain - low) / (high - low) : 1);
    const tell = (row) => `η₁ = ${digits(row.weights[0], 3)}, η₂ = ${digits(row.weights[1], 3)}\nE = ${si(row.energy, unit("J"))}, T = ${si(row.delay, unit("s"))}\nU = ${digits(row.gain)}, ${row.count} uploads`;
    chart.line(rows.map((row) => [row.energy, row.delay]), "front");
    for (const row of rows) if (row.ratio !== 1) chart.dot(row.energy, row.delay, { class: "front-dot", fill: colour(row.gain) }, tell(row), 4.6);
    const here = rows.find((row) => row.ratio === 1);
    if (here) {
      chart.inside.append(svg("circle", { class: "here-ring", cx: chart.x(here.energy), cy: chart.y(here.delay), r: 9.5 }));
      chart.dot(here.energy, here.delay, { class: "front-dot here", fill: colour(here.gain) }, `your weights\n${tell(here)}`, 5.4);
    }
    const ends = [[rows[0], "energy weighs little"], [rows.at(-1), "energy weighs most"], ...(here ? [[here, "your weights"]] : [])];
    for (const [row, words] of ends) if (row !== here || words === "your weights") {
      const isRight = chart.x(row.energy) > 260;
      chart.text(row.energy, row.delay, words, { dx: isRight ? -12 : 12, dy: row === rows[0] && row !== here ? 18 : -10, anchor: isRight ? "end" : "start", looks: row === here ? "strong" : "tiny" });
    }
    const { x1, y0, y1 } = chart.box, steps = 24, height = y0 - y1;
    for (let k = 0; k < steps; k++) chart.above.append(svg("rect", { x: x1 + 14, y: y0 - ((k + 1) * height) / steps, width: 10, height: height / steps + 0.5, fill: viridis((k + 0.5) / steps) }));
    chart.above.append(svg("text", { x: x1 + 29, y: y1 + 10, class: "tick" }, digits(high, 3)), svg("text", { x: x1 + 29, y: y0, class: "tick" }, digits(low, 3)), svg("text", { x: x1 + 29, y: (y0 + y1) / 2 + 4, class: "strong", ...word("U") }, "U"));
    body.replaceChildren(chart.node);
    note.textContent = "Each dot is the optimum for another η₁/η₂, from a hundredth to a hundred times yours. Its colour is U: a round that is cheaper in both is worth less.";
  }

  async export(kind) {
    const title = { toml: "As TOML", python: "As Python", problem: "As a problem file" }[kind];
    const hint = { toml: "Save it as cell.toml, then: fedwave explore cell.toml --json", python: "Prints every method's objective.", problem: "Every number of this round: fedwave allocate problem.toml --compare" }[kind];
    try {
      const { text } = await ask("export", { ...this.question, kind });
      const dialog = find("export");
      find("export-title").textContent = title;
      find("export-hint").textContent = hint;
      find("export-text").value = text;
      find("export-done").textContent = "";
      find("export-save").onclick = () => saveText({ toml: "cell.toml", python: "cell.py", problem: "problem.toml" }[kind], text);
      find("export-close").onclick = () => dialog.close();
      dialog.showModal();
      find("export-text").select();
      await navigator.clipboard.writeText(text).then(() => { find("export-done").textContent = "Copied."; }, () => { find("export-done").textContent = "Select and copy it."; });
    } catch (error) {
      showError(error);
    }
  }
}

// The colours of matplotlib's viridis, which pictures of fronts have, between nine of its values.
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
function viridis(share) {
  const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1), k = Math.min(Math.floor(at), VIRIDIS.length - 2);
  const parts = [VIRIDIS[k], VIRIDIS[k + 1]].map((hex) => [1, 3, 5].map((from) => parseInt(hex.slice(from, from + 2), 16)));
  return `rgb(${parts[0].map((low, i) => Math.round(low + (at - k) * (parts[1][i] - low))).join(" ")})`;
}

const proven = (found) => (found.upper_bound === null ? `nothing proven (${found.status})` : found.gap === 0 || found.gap < 1e-9 ? "proven optimal" : `proven within ${digits(100 * found.gap, 2)} %`);
const nearest = (curve, delay) => curve.objective[curve.delay_s.reduce((best, one, k) => (Math.abs(one - delay) < Math.abs(curve.delay_s[best] - delay) ? k : best), 0)];

// What the best of the simple rules that know the channel loses here: the optimum's lead over common sense.
function simplest(methods) {
  const found = bestSimple(methods);
  return found ? `The best simple rule, ${NAMES[found.method]}, loses ${lossText(found.lost)} of the proven optimum here. ` : "";
}

function verdict(curve, last, ives) {
  if (!last) return "";
  if (ives?.num_selected === 0) return "IVES ends at a point worth less than nobody uploading, so nobody uploads.";
  const missed = curve.optimum.objective - last.objective;
  if (missed <= 1e-9 * Math.abs(curve.optimum.objective)) return "Here IVES finds the optimum.";
  const slower = last.delay_s / curve.optimum.delay_s;
  return slower > 1.2 ? `IVES keeps devices that the optimum leaves out or hurries: its delay is ${digits(slower, 2)} times the optimum's.` : `IVES misses the optimum by ${digits(missed, 3)}.`;
}
