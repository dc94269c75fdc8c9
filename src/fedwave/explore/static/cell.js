// The cell tab: asks for the optimum first, then for what takes longer, and starts over when a slider moves.
import { ACCESSES, SIMPLE, accessTable, bestSimple, lossText } from "./accesses.js";
import { ask, showError } from "./ask.js";
import { Chart, range } from "./chart.js";
import { Controls } from "./controls.js";
import { digits, el, find, si, svg } from "./dom.js";
import { CellMap } from "./map.js";
import { saveButtons, saveText } from "./save.js";
import { SHARES, schedulePicture, usedShare } from "./schedule.js";

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
    find("card-curve").hidden = question.view.access !== "one-block"; // IVES and the matching at a delay are of one block each
    if (this.isDirty) return;
    if (question.view.access === "one-block") this.drawCurve(await ask("curve", question));
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
      const view = { ...question.view, access, work_conserving: false, ...(access === "one-block" ? { max_uploads: null } : {}) };
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
      picture.append(svg("text", { x: left - 10, y: y + 18, "text-anchor": "end", class: "strong" }, name));
      for (const [part, words] of parts) {
        const [a, b] = [at(level), at(level + part)].sort((one, other) => one - other);
        picture.append(svg("rect", { x: a, y, width: Math.max(b - a, 1), height: 27, rx: 3, class: `${looks} ${words.startsWith("computing") ? "light" : ""}` }, svg("title", {}, words)));
        level += part;
      }
      picture.append(svg("text", { x: width - right + 12, y: y + 12, class: "strong" }, `${worth >= 0 ? "+" : ""}${digits(worth)}`), svg("text", { x: width - right + 12, y: y + 26, class: "tiny" }, amount));
    });
    const [a, b] = [at(0), at(level)].sort((one, other) => one - other);
    picture.append(svg("text", { x: left - 10, y: 152, "text-anchor": "end", class: "strong" }, "sum"), svg("rect", { x: a, y: 134, width: Math.max(b - a, 1), height: 27, rx: 3, class: "sum" }), svg("text", { x: width - right + 12, y: 152, class: "strong" }, digits(found.objective)));
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
    this.cards.methods.body.replaceChildren(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head.map((words) => el("th", {}, words)))), el("tbody", {}, rows))));
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
      x: { label: `upload delay δ${this.about.is_normalised ? "" : " [s]"}`, domain: [curve.delay_s[0], Math.max(curve.delay_s.at(-1), last?.delay_s ?? 0)], log: true },
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

  drawFront(all) {
    const { body, note } = this.cards.front;
    const rows = all.some((row) => row.count > 0) ? all.filter((row) => row.count > 0) : all; // nobody uploading is no trade-off
    body.classList.remove("stale");
    const others = Object.values(this.methods).filter((found) => found.method !== "optimal" && found.energy_j > 0 && found.delay_s > 0 && found.num_selected > 0);
    const energies = [...rows.map((row) => row.energy), ...others.map((one) => one.energy_j)], delays = [...rows.map((row) => row.delay), ...others.map((one) => one.delay_s)];
    const { unit } = this;
    const chart = new Chart({ width: 480, height: 290, label: "Energy against delay for many weights",
      x: { label: `energy E${unit(" [J]")}`, domain: range(energies, 0.08, true), log: true, format: (value) => digits(value, 3) },
      y: { label: `delay T${unit(" [s]")}`, domain: range(delays, 0.1, true), log: true, format: (value) => digits(value, 3) } });
    chart.line(rows.map((row) => [row.energy, row.delay]), "front");
    for (const row of rows) chart.dot(row.energy, row.delay, "front-dot", `η₁ = ${digits(row.weights[0], 3)}, η₂ = ${digits(row.weights[1], 3)}\nE = ${si(row.energy, unit("J"))}, T = ${si(row.delay, unit("s"))}\nU = ${digits(row.gain)}, ${row.count} uploads`, 3.4);
    const here = rows.find((row) => row.ratio === 1);
    if (here) {
      chart.dot(here.energy, here.delay, "here", `the present weights\nE = ${si(here.energy, unit("J"))}, T = ${si(here.delay, unit("s"))}\nU = ${digits(here.gain)}`, 6.5);
      chart.text(here.energy, here.delay, "present weights", { dx: 11, dy: -8, looks: "f-optimal strong" });
    }
    for (const one of others) {
      chart.dot(one.energy_j, one.delay_s, `f-${one.method}`, `${NAMES[one.method] ?? one.method}\nE = ${si(one.energy_j, unit("J"))}, T = ${si(one.delay_s, unit("s"))}\nU = ${digits(one.contribution)}, ${one.num_selected} uploads`);
      const isRight = chart.x(one.energy_j) > 380;
      chart.text(one.energy_j, one.delay_s, NAMES[one.method] ?? one.method, { dx: isRight ? -8 : 8, dy: 4, anchor: isRight ? "end" : "start", looks: `f-${one.method}` });
    }
    body.replaceChildren(chart.node);
    note.textContent = "Each ring is the optimum for another η₁/η₂, from a hundredth to a hundred times the present one; U differs between them.";
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
