// The run tab: curves of runs while they run, who was selected when, joules by phase, and each round on the map.
import { ask, showError } from "./ask.js";
import { Chart, range } from "./chart.js";
import { digits, el, si, svg, tip, pointIn } from "./dom.js";
import { CellMap } from "./map.js";
import { saveButtons } from "./save.js";
import { word } from "./words.js";

const AXES = { rounds: "rounds", cumulative_delay_s: "seconds on the cell's clock", cumulative_energy_j: "joules of all devices" };
// A scheme has its colour, as in every picture (SCHEME_COLOURS in plots/style.py); other runs have one by their place.
const SCHEMES = {
  "NUFM": "nufm", "Per-FedAvg": "per-fedavg", "FedAvg": "fedavg", "URAL (optimal)": "ural", "URAL (IVES)": "ural-ives", "NUFM-Greedy": "nufm-greedy", "NUFM-Random": "nufm-random",
  "RU-Greedy": "ru-greedy", "RU-Random": "ru-random", "Threshold": "threshold", "Value-rate": "value-rate", "Proportional fair": "proportional-fair",
};
// Other runs have a colour that no scheme here has, the same for all seeds of a setting: as `looks_of` in plots/chart.py.
const FREE = ["nufm-greedy", "ural-ives", "ural", "ru-greedy", "per-fedavg", "fedavg", "nufm", "ru-random"]; // whose colours these are
// "NUFM-Greedy, UMi" is NUFM-Greedy, where no other run here is: as `schemes_of` in plots/style.py.
function ownSchemes(names) {
  const schemes = Object.keys(SCHEMES).sort((one, other) => other.length - one.length);
  const found = names.map((name) => [name, schemes.find((scheme) => name === scheme || name.startsWith(`${scheme}, `) || name.startsWith(`${scheme} (`))]);
  const isAlone = ([name, scheme]) => name === scheme || (!names.includes(scheme) && found.filter(([, other]) => other === scheme).length === 1);
  return new Map(found.filter((one) => one[1] && isAlone(one)).map(([name, scheme]) => [name, SCHEMES[scheme]]));
}
function looksOf(names) {
  const own = ownSchemes(names), isScheme = (name) => own.has(name), taken = new Set(names.filter(isScheme).map((name) => own.get(name)));
  const left = FREE.filter((one) => !taken.has(one)), free = left.length ? left : FREE;
  const others = names.filter((name) => !isScheme(name));
  return new Map(names.map((name) => [name, `q-${isScheme(name) ? own.get(name) : free[others.indexOf(name) % free.length]}${!isScheme(name) && others.indexOf(name) >= free.length ? " dashed" : ""}`]));
}
const EVERY_MS = 1500;
const MOST_BARS = 80;
const MOST_THREADS = 5; // seeds that are drawn one by one; of more, their interval
const TITLED = { left: 58, right: 16, top: 28, bottom: 38 }; // room for a title above the axes

export class RunTab {
  constructor(panel, start) {
    Object.assign(this, { panel, axis: "rounds", run: 0, round: null, stamp: null, numRuns: start.num_runs });
    if (this.numRuns === 0) this.offer(start); else this.build();
  }

  // Without runs: how to name some, and those that lie where `fedwave run` puts them.
  offer({ offered, num_offered: count }) {
    const show = async () => {
      try {
        this.numRuns = (await ask("open-runs")).num_runs;
        this.build();
        this.watch();
      } catch (error) {
        showError(error);
      }
    };
    this.panel.replaceChildren(el("div", { class: "empty" },
      count > 0 ? el("p", {}, el("button", { type: "button", id: "show-runs", class: "main", onclick: show }, `Show the ${count === 1 ? "run" : `${count} runs`} in ./${offered}`)) : null,
      count > 0 ? null : el("p", {}, "There are no runs yet. Make some with ", el("code", {}, "fedwave run digits/ural"), offered ? `: they are put in ./${offered}, and offered here.` : "."),
      el("p", {}, "Or start with ", el("code", {}, "fedwave explore RUN_DIR …"), " to see runs here, also while they run; a folder of runs is all of its runs.")));
  }

  build() {
    const { panel } = this;
    this.cards = {};
    this.list = el("div", { class: "scroll long", tabindex: 0 });
    this.segment = el("span", { class: "segment", role: "group", "aria-label": "Horizontal axis" }, Object.entries({ rounds: "Rounds", cumulative_delay_s: "Seconds", cumulative_energy_j: "Joules" }).map(([key, words]) =>
      el("button", { type: "button", "data-axis": key, "aria-pressed": String(key === this.axis), onclick: () => this.setAxis(key) }, words)));
    this.choice = el("select", { id: "run-choice", onchange: () => { this.run = Number(this.choice.value); this.round = null; this.places = null; this.detail().catch(showError); } });
    this.slider = el("input", { type: "range", id: "round-slider", min: 0, max: 0, step: 1, value: 0, "aria-label": "Round", oninput: () => { this.round = Number(this.slider.value); this.replay().catch(showError); } });
    this.output = el("output", { for: "round-slider" });
    this.average = el("span", { class: "segment", role: "group", "aria-label": "What is drawn", hidden: true }, [["each", "Each run"], ["mean", "Mean over seeds"]].map(([key, words]) =>
      el("button", { type: "button", "data-average": key, onclick: () => this.setAverage(key === "mean") }, words)));
    panel.replaceChildren(
      el("div", { class: "cards" },
        el("section", { class: "card c12", id: "card-list", "aria-label": "Runs" }, this.list),
        el("div", { class: "bar c12 card-free" }, el("label", {}, "Against"), this.segment, this.average),
        this.card("loss", "Held-out loss after adaptation", "c4"), this.card("metric", "Held-out metric", "c4"), this.card("train", "Loss of the computing devices", "c4"),
        el("div", { class: "bar c12 card-free" }, el("label", { for: "run-choice" }, "Look into"), this.choice),
        this.card("replay", "The allocation, round by round", "c7 tall", el("div", { class: "replay" }, el("button", { type: "button", id: "play", onclick: () => this.play() }, "Play"), this.slider, this.output)),
        this.card("fate", "Who was selected when", "c5"), this.card("energy", "Energy by device and phase", "c5"), this.card("battery", "Batteries", "c6"), this.card("planner", "Prices and queues", "c6")));
    for (const bar of panel.querySelectorAll(".card-free")) bar.classList.replace("c12", "whole");
    for (const key of ["battery", "planner"]) this.cards[key].body.closest(".card").hidden = true;
  }

  card(key, title, size, extra = null) {
    const body = el("div", { class: "body" }), note = el("p", { class: "note" }), heading = el("h2", {}, title);
    this.cards[key] = { body, note, heading };
    return el("section", { class: `card ${size}`, id: `card-${key}`, "aria-label": title }, el("div", { class: "head" }, heading, saveButtons(`run-${key}`, () => body.querySelector("svg"), () => "")), note, extra, body);
  }

  // Asks again and again while the tab is shown; an answer without news costs next to nothing.
  async watch() {
    if (this.numRuns === 0 || this.isWatching) return;
    this.isWatching = true;
    while (!this.panel.hidden) {
      try {
        const answer = await ask("runs", { stamp: this.stamp });
        if (answer.runs) {
          this.stamp = answer.stamp;
          this.runs = answer.runs;
          this.means = answer.means;
          this.draw();
          await this.detail();
        }
        showError(null);
        this.panel.dataset.state = "ready";
      } catch (error) {
        showError(error);
      }
      await new Promise((done) => setTimeout(done, EVERY_MS));
    }
    this.isWatching = false;
  }

  setAverage(isMean) {
    this.isMean = isMean;
    this.draw();
  }

  setAxis(key) {
    this.axis = key;
    for (const button of this.segment.children) button.setAttribute("aria-pressed", String(button.dataset.axis === key));
    this.draw();
  }

  // Runs that belong together, as the server groups them; each by itself where it cannot.
  groups() {
    const found = this.means.groups;
    return found.length ? found : this.runs.flatMap((run, k) => (run.error ? [] : [{ name: run.name, runs: [k] }]));
  }

  draw() {
    const groups = this.groups(), colours = looksOf([...new Set(groups.map((group) => group.name))]);
    const looks = (k) => colours.get(groups.find((group) => group.runs.includes(k))?.name) ?? "";
    const nameOf = (k) => groups.find((group) => group.runs.includes(k))?.name ?? this.runs[k].name;
    this.looks = looks;
    const hasSeeds = this.means.groups.some((group) => group.runs.length > 1);
    this.isMean = hasSeeds && (this.isMean ?? true);
    this.average.hidden = !hasSeeds;
    for (const button of this.average.children) button.setAttribute("aria-pressed", String((button.dataset.average === "mean") === this.isMean));
    this.list.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ["run", "rounds", "state", "method", "loss", this.runs.find((run) => run.metric)?.metric.name ?? "metric", "time", "energy", "folder"].map((words, k) => el("th", { class: [2, 3, 8].includes(k) ? "word" : "", ...(["loss", "time", "energy"].includes(words) ? word(words) : {}) }, words)))),
      el("tbody", {}, this.runs.map((run, k) => (run.error
        ? el("tr", {}, el("td", {}, run.path), el("td", { class: "word", colspan: 8 }, run.error))
        : el("tr", {}, el("td", {}, el("span", { class: `dot swatch ${looks(k)}` }), `${nameOf(k)}, seed ${run.seed}`), el("td", {}, `${run.num_rounds} / ${run.planned_rounds}`),
          el("td", { class: "word" }, run.is_finished ? "finished" : run.num_rounds < run.planned_rounds ? "running or stopped" : "ending"), el("td", { class: "word" }, run.method ?? "no cell"),
          el("td", {}, digits(lastOf(run.curves.heldout_loss))), el("td", {}, metricText(run, lastOf(run.curves.metric))), el("td", {}, run.has_cell ? si(lastOf(run.curves.cumulative_delay_s), run.is_normalised ? "" : "s") : "–"),
          el("td", {}, run.has_cell ? si(lastOf(run.curves.cumulative_energy_j), run.is_normalised ? "" : "J") : "–"), el("td", { class: "word" }, run.path)))))));
    const good = this.runs.map((run, k) => ({ ...run, k })).filter((run) => !run.error && run.num_rounds > 0);
    const choices = this.runs.map((run, k) => [k, run]).filter(([, run]) => !run.error);
    if (this.choice.options.length !== choices.length) {
      this.choice.replaceChildren(...choices.map(([k, run]) => el("option", { value: k }, `${nameOf(k)}, seed ${run.seed} (${run.path})`)));
      if (choices.length) this.run = choices[0][0];
    }
    const metric = good[0]?.metric;
    if (metric) this.cards.metric.heading.textContent = `Held-out ${metric.name}`;
    const percent = metric?.is_share ? (value) => `${digits(100 * value, 3)} %` : digits;
    this.plot("loss", good, "heldout_loss", "loss");
    this.plot("metric", good, "metric", metric?.name ?? "", percent);
    this.plot("train", good, "train_loss", "loss");
  }

  // Means over seeds with their 95 % intervals; an interval that is much wider than the curves is cut off.
  plotMeans(key, name, label, format) {
    const { body, note } = this.cards[key];
    const groups = this.groups(), colours = looksOf([...new Set(groups.map((group) => group.name))]);
    const lines = this.means.curves[this.axis][name].map((one) => ({ ...one, label: groups[one.group].name, at: one.x.map((_, k) => k).filter((k) => one.mean[k] !== null) })).filter((one) => one.at.length > 0);
    const short = groups.length - new Set(lines.map((one) => one.group)).size;
    const isFew = groups.every((group) => group.runs.length <= MOST_THREADS);
    note.textContent = `Mean over seeds${isFew ? "; a faint line is one seed" : " and its 95 % interval"}${this.axis === "rounds" ? "" : ", where all seeds have come"}.${short && this.axis !== "rounds" ? " Runs without a cell have no seconds and joules." : ""}`;
    if (lines.length === 0) { body.replaceChildren(el("p", { class: "empty" }, "Nothing was measured yet.")); return; }
    const log = this.axis !== "rounds" && spanOf(lines.map((one) => ({ points: one.at.map((k) => [one.x[k]]) }))) > 8;
    const means = lines.flatMap((one) => one.at.map((k) => one.mean[k])), room = Math.max(...means) - Math.min(...means) || Infinity;
    const edges = isFew ? lines.flatMap((one) => groups[one.group].runs.flatMap((run) => this.points(this.runs[run], name).map(([, y]) => y)))
      : lines.flatMap((one) => one.at.flatMap((k) => [one.low[k] ?? one.mean[k], one.high[k] ?? one.mean[k]]));
    const domain = range([Math.max(Math.min(...edges), Math.min(...means) - room), Math.min(Math.max(...edges), Math.max(...means) + room)]);
    const chart = new Chart({ width: 390, height: 250, label: `mean ${label} against ${AXES[this.axis]}`,
      x: { label: AXES[this.axis], domain: range(lines.flatMap((one) => one.at.map((k) => one.x[k])), 0.03, log), log, format: (value) => digits(value, 3) }, y: { label, domain, format } });
    for (const one of lines) {
      const looks = colours.get(one.label);
      if (!isFew) chart.band(one.at.filter((k) => one.low[k] !== null).map((k) => [one.x[k], one.low[k], one.high[k]]), `seed-band ${looks}`);
      else if (one.seeds > 1) for (const run of groups[one.group].runs) chart.line(this.points(this.runs[run], name), `run-line faint ${looks}`);
      chart.line(one.at.map((k) => [one.x[k], one.mean[k]]), `run-line ${looks}`);
      for (const k of one.at) chart.spot(one.x[k], one.mean[k], `${one.label}, ${one.seeds} seed${one.seeds > 1 ? "s" : ""}\n${AXES[this.axis]}: ${digits(one.x[k])}\n${label}: ${format(one.mean[k])}${one.high[k] === null || one.seeds < 2 ? "" : ` ± ${format(one.high[k] - one.mean[k])}`}`);
      const last = one.at.at(-1);
      chart.dot(one.x[last], one.mean[last], `run-dot ${looks}`, null, 3.5);
    }
    body.replaceChildren(chart.node);
  }

  // A run's curve against the chosen axis; a row holds what is true after its round.
  points(run, name) {
    const x = this.axis === "rounds" ? run.curves[name].map((_, k) => k + 1) : run.curves[this.axis];
    return x.map((value, k) => [value, run.curves[name][k]]).filter(([value, y]) => value !== null && y !== null);
  }

  plot(key, runs, name, label, format = digits) {
    if (this.isMean) { this.plotMeans(key, name, label, format); return; }
    const { body, note } = this.cards[key];
    const usable = runs.filter((run) => this.axis === "rounds" || run.has_cell);
    note.textContent = usable.length < runs.length ? "Runs without a cell have no seconds and joules." : "";
    const lines = usable.map((run) => ({ run, points: this.points(run, name) }));
    const all = lines.flatMap((line) => line.points);
    if (all.length === 0) { body.replaceChildren(el("p", { class: "empty" }, "Nothing was measured yet.")); return; }
    const log = this.axis !== "rounds" && spanOf(lines) > 8;
    const chart = new Chart({ width: 390, height: 250, label: `${label} against ${AXES[this.axis]}`,
      x: { label: AXES[this.axis], domain: range(all.map(([x]) => x), 0.03, log), log, format: (value) => digits(value, 3) }, y: { label, domain: range(all.map(([, y]) => y)), format } });
    for (const { run, points } of lines) {
      chart.line(points, `run-line ${this.looks(run.k)}`);
      points.forEach(([x, y], k) => {
        chart.spot(x, y, `${run.name}, seed ${run.seed}\n${AXES[this.axis]}: ${digits(x)}\n${label}: ${format(y)}`);
        if (k === points.length - 1) chart.dot(x, y, `run-dot ${this.looks(run.k)}`, null, 3.5);
      });
    }
    body.replaceChildren(chart.node);
  }

  async detail() {
    const run = this.runs?.[this.run];
    if (!run || run.error || run.num_rounds === 0) return;
    const devices = await ask("run-devices", { run: this.run });
    this.drawFate(devices);
    this.drawEnergy(devices, run);
    this.drawBattery(devices);
    this.drawPlanner(devices);
    const last = devices.num_rounds - 1;
    const follows = this.round === null || Number(this.slider.value) === Number(this.slider.max);
    this.slider.max = last;
    if (follows) this.slider.value = this.round = last;
    this.cards.replay.body.closest(".card").hidden = !run.has_cell;
    if (!run.has_cell) return;
    if (!this.places) {
      this.places = await ask("run-places", { run: this.run });
      this.map = new CellMap({ units: !run.is_normalised });
      this.cards.replay.body.replaceChildren(this.map.node);
    }
    await this.replay();
  }

  async replay() {
    const wanted = this.round;
    this.output.textContent = `round ${wanted} of ${this.slider.max}`;
    if (this.isReplaying) return;
    this.isReplaying = true;
    try {
      const found = await ask("run-round", { run: this.run, round: wanted });
      this.map.setPlaces({ ...this.places, contribution: found.contribution });
      this.map.setUploads(found.uploads, found.noise_w, "optimal", { ids: found.ids, access: found.access });
      const lost = found.uploads.success.filter((one) => !one).length;
      this.cards.replay.note.textContent = `${found.uploads.device.length} devices upload in round ${wanted}${lost ? `, ${lost} in vain` : ""}. ${this.runs[this.run].notes[wanted] ?? ""}`;
      this.map.node.dataset.round = wanted;
    } finally {
      this.isReplaying = false;
    }
    if (this.round !== wanted) await this.replay();
  }

  async play() {
    const button = this.panel.querySelector("#play");
    if (this.isPlaying) { this.isPlaying = false; return; }
    this.isPlaying = true;
    button.textContent = "Stop";
    if (this.round >= Number(this.slider.max)) this.round = -1;
    while (this.isPlaying && this.round < Number(this.slider.max)) {
      this.slider.value = this.round += 1;
      await this.replay().catch(showError);
      await new Promise((done) => setTimeout(done, 450));
    }
    this.isPlaying = false;
    button.textContent = "Play";
  }

  // A pixel for every device and round, drawn on a canvas and shown as one image.
  drawFate({ device, num_rounds: rounds, fate }) {
    const looks = getComputedStyle(document.documentElement);
    const colours = ["--grid", "--m-ives", "--m-optimal"].map((name) => looks.getPropertyValue(name).trim());
    const canvas = el("canvas", { width: rounds, height: device.length });
    const pen = canvas.getContext("2d");
    fate.forEach((row, k) => [...row].forEach((one, i) => { pen.fillStyle = colours[one]; pen.fillRect(k, i, 1, 1); }));
    const width = 440, height = 260, box = { x: 46, y: 8, width: 384, height: 206 };
    const image = svg("image", { ...box, href: canvas.toDataURL(), preserveAspectRatio: "none", style: null });
    image.style.imageRendering = "pixelated";
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Device by round: who was selected" }, image,
      svg("text", { x: box.x - 6, y: 18, "text-anchor": "end" }, device[0]), svg("text", { x: box.x - 6, y: box.y + box.height, "text-anchor": "end" }, device.at(-1)),
      svg("text", { x: 13, y: 112, "text-anchor": "middle", transform: "rotate(-90 13 112)" }, "device"),
      svg("text", { x: box.x, y: 230 }, "0"), svg("text", { x: box.x + box.width, y: 230, "text-anchor": "end" }, rounds - 1), svg("text", { x: box.x + box.width / 2, y: 230, "text-anchor": "middle" }, "round"),
      svg("rect", { x: box.x, y: 243, width: 11, height: 11, rx: 2, class: "f-optimal" }), svg("text", { x: box.x + 16, y: 253 }, "received"), svg("rect", { x: box.x + 90, y: 243, width: 11, height: 11, rx: 2, class: "f-ives" }), svg("text", { x: box.x + 106, y: 253 }, "lost"));
    picture.addEventListener("pointermove", (event) => {
      const [x, y] = pointIn(picture, event);
      const k = Math.floor(((x - box.x) / box.width) * rounds), i = Math.floor(((y - box.y) / box.height) * device.length);
      if (k < 0 || i < 0 || k >= rounds || i >= device.length) { tip(null); return; }
      tip(`device ${device[i]}, round ${k}\n${["not selected", "selected, lost", "received"][fate[k][i]]}`, event.clientX, event.clientY);
    });
    picture.addEventListener("pointerleave", () => tip(null));
    const total = fate.reduce((sum, row) => sum + [...row].filter((one) => one !== "0").length, 0);
    this.cards.fate.note.textContent = `${total} uploads in ${rounds} rounds; ${device.filter((_, i) => fate.every((row) => row[i] === "0")).length} of ${device.length} devices never.`;
    this.cards.fate.body.replaceChildren(picture);
  }

  drawEnergy({ device, energy_j: energy }, run) {
    const { body, note } = this.cards.energy;
    body.closest(".card").hidden = Object.keys(energy).length === 0;
    if (Object.keys(energy).length === 0) return;
    const phases = Object.keys(energy).filter((phase) => energy[phase].some((one) => one > 0));
    const order = device.map((_, i) => i).sort((a, b) => sumOf(energy, b) - sumOf(energy, a));
    const shown = order.slice(0, MOST_BARS);
    const most = Math.max(sumOf(energy, shown[0]), 1e-300);
    const chart = new Chart({ width: 440, height: 260, label: "Energy by device and phase", x: { label: shown.length < order.length ? `the ${MOST_BARS} devices that spent most` : "devices, highest first", domain: [0, shown.length], format: () => "" }, y: { label: run.is_normalised ? "energy" : "joules", domain: [0, most * 1.18] } });
    shown.forEach((i, at) => {
      let level = 0;
      for (const phase of phases) {
        const value = energy[phase][i] ?? 0;
        const [x, next] = [chart.x(at + 0.12), chart.x(at + 0.88)];
        chart.inside.append(svg("rect", { x, y: chart.y(level + value), width: next - x, height: Math.max(chart.y(level) - chart.y(level + value), 0), class: `p-${phase}` }));
        level += value;
      }
      chart.spot(at + 0.5, level, `device ${device[i]}: ${si(level, run.is_normalised ? "" : "J")}\n${phases.map((phase) => `${phase} ${si(energy[phase][i], run.is_normalised ? "" : "J")}`).join("\n")}`);
    });
    phases.forEach((phase, k) => chart.above.append(svg("rect", { x: 180 + 88 * (k % 3), y: 12 + 18 * Math.floor(k / 3), width: 11, height: 11, rx: 2, class: `p-${phase}` }), svg("text", { x: 196 + 88 * (k % 3), y: 22 + 18 * Math.floor(k / 3) }, phase)));
    const total = (phase) => energy[phase].reduce((sum, one) => sum + (one ?? 0), 0);
    note.textContent = phases.map((phase) => `${phase} ${si(total(phase), run.is_normalised ? "" : "J")}`).join(", ") + ".";
    body.replaceChildren(chart.node);
  }

  drawBattery({ battery, device }) {
    this.cards.battery.body.closest(".card").hidden = !battery;
    if (!battery) return;
    const dead = new Chart({ width: 440, height: 184, margin: TITLED, label: "Devices without charge", title: "devices without charge", x: { label: "round", domain: [0, Math.max(battery.num_dead.length, 1)] }, y: { label: "", domain: [0, Math.max(1, ...battery.num_dead) * 1.08] } });
    dead.line(battery.num_dead.map((value, k) => [k + 1, value]), "path");
    battery.num_dead.forEach((value, k) => dead.spot(k + 1, value, `after round ${k}: ${value} of ${device.length} have no charge for the next`));
    const first = battery.num_dead.findIndex((one) => one > 0);
    this.cards.battery.note.textContent = `Median device, and the band from a tenth to nine tenths. ${first < 0 ? "Nobody has died." : `The first is without charge after round ${first}; ${Math.max(...battery.num_dead)} at a time at most, ${battery.num_dead.at(-1)} now.`}`;
    this.cards.battery.body.replaceChildren(spread(battery.charge_j, "joules", "charge of devices"), dead.node);
  }

  drawPlanner({ planner }) {
    const names = Object.keys(planner);
    this.cards.planner.body.closest(".card").hidden = names.length === 0;
    this.cards.planner.note.textContent = "What the planner says of devices as it plans a round: the median, and the band from a tenth to nine tenths of them.";
    this.cards.planner.body.replaceChildren(...names.map((name) => spread(planner[name], "", name.replaceAll("_", " "), "in")));
  }
}

// A median and the band around it, by rounds; a row holds what is true after its round.
function spread({ low, median, high }, unit, title, when = "after") {
  const points = median.map((value, k) => [k + 1, low[k], high[k], value]).filter((one) => one[3] !== null);
  const chart = new Chart({ width: 440, height: 234, margin: TITLED, label: title, title, x: { label: "round", domain: [0, Math.max(median.length, 1)] }, y: { label: unit, domain: range(points.flatMap(([, a, b]) => [a, b])) } });
  chart.band(points.map(([k, a, b]) => [k, a, b]), "spread-band");
  chart.line(points.map(([k, , , value]) => [k, value]), "curve");
  for (const [k, a, b, value] of points) chart.spot(k, value, `${when} round ${k - 1}\nmedian ${digits(value)}\na tenth below ${digits(a)}, a tenth above ${digits(b)}`);
  return chart.node;
}

const sumOf = (energy, i) => Object.values(energy).reduce((sum, values) => sum + (values[i] ?? 0), 0);
const lastOf = (values) => values.findLast((value) => value !== null) ?? null;
const metricText = (run, value) => (value === null ? "–" : run.metric.is_share ? `${digits(100 * value, 3)} %` : digits(value));

function spanOf(lines) {
  const ends = lines.map((line) => line.points.at(-1)?.[0]).filter((end) => end > 0);
  return Math.max(...ends) / Math.min(...ends);
}
