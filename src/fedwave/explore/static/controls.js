// The form of the cell tab: a slider and a field for each number that decides the picture.
import { ACCESSES } from "./accesses.js";
import { el } from "./dom.js";
import { word } from "./words.js";

const STEPS = 1000;

// key, label, unit, scale of the field, [lowest, highest] of the slider around the first value
const SLIDERS = [
  { key: "energy_weight", label: ["η₁", " energy"], unit: "1/J", span: [1e-3, 1e3], floor: 1e-3 },
  { key: "delay_weight", label: ["η₂", " delay"], unit: "1/s", span: [1e-3, 1e3], floor: 1e-3 },
  { key: "num_blocks", label: ["M", " blocks"], unit: "", whole: [1, 100] },
  { key: "max_power_w", label: ["p", " max. power"], unit: "mW", per: 1e-3, span: [1e-2, 1e2] },
  { key: "bandwidth_hz", label: ["B", " bandwidth"], unit: "kHz", per: 1e3, span: [1e-1, 1e1] },
  { key: "model_bits", label: ["S", " model size"], unit: "Mbit", per: 1e6, span: [1e-2, 1e2] },
  { key: "deadline_s", word: "T deadline", label: ["T", " deadline"], unit: "s", isOptional: true, around: 10, span: [1e-2, 1e2] },
];

export class Controls {
  constructor(form, onChange) {
    Object.assign(this, { form, onChange });
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  build(given) {
    const { sources, source, view, about, onSource, onExport, onReset } = given;
    this.view = { ...view };
    this.rebuild = () => this.build({ ...given, view: this.view });
    this.fields = {};
    const small = (key, words, attributes = {}) => this.number(key, words, { min: 0, step: 1, ...attributes });
    this.form.replaceChildren(
      this.labelled("Cell", el("select", { id: "source", onchange: (event) => onSource(event.target.value) },
        sources.map((name) => el("option", { value: name, selected: name === source }, name)))),
      el("p", { class: "about" }, about.description),
      ...this.sharing(about),
      el("div", { class: "pair" }, small("num_devices", "Devices n", { min: 1, word: "n" }), small("seed", "Seed", { word: "seed" })),
      ...SLIDERS.map((slider) => this.slider(slider, about)),
      el("div", { class: "pair" }, this.kind(), this.number("mean_contribution", "Mean of u", { min: 0, step: "any", word: "mean of u" })),
      el("div", { class: "pair" }, small("num_samples", "Samples D", { min: 1, word: "D" }), about.is_redrawn ? small("round_index", "Round", { word: "round" }) : null),
      el("div", { class: "actions" },
        el("button", { type: "button", id: "copy-toml", onclick: () => onExport("toml") }, "Copy as TOML"),
        el("button", { type: "button", id: "copy-python", onclick: () => onExport("python") }, "Copy as Python"),
        el("button", { type: "button", id: "copy-problem", onclick: () => onExport("problem") }, "Problem file"),
        el("button", { type: "button", id: "reset", onclick: onReset }, "Reset")));
  }

  labelled(words, input, name = null) {
    return el("div", { class: "field" }, el("div", { class: "top" }, el("label", { for: input.id, ...(name ? word(name) : {}) }, words)), input);
  }

  number(key, words, { word: name, ...attributes }) {
    const input = el("input", { type: "number", id: key, value: this.view[key], ...attributes });
    input.addEventListener("change", () => {
      const value = Number(input.value);
      const isFine = input.value !== "" && Number.isFinite(value) && (attributes.step !== 1 || Number.isInteger(value));
      if (isFine) this.set(key, value); else input.value = this.view[key];
    });
    return this.labelled(words, input, name);
  }

  kind() {
    const names = { uniform: "uniform", exponential: "exponential", equal: "all equal" };
    const input = el("select", { id: "contribution", onchange: () => this.set("contribution", input.value) },
      Object.entries(names).map(([value, words]) => el("option", { value, selected: this.view.contribution === value }, words)));
    return this.labelled("Contribution u", input, "u");
  }

  // How the band is shared; what a cell cannot be shared by says why. Limits that only some accesses know come and go.
  sharing(about) {
    const access = el("select", { id: "access", onchange: () => this.choose(access.value) }, Object.entries(ACCESSES).map(([value, words]) =>
      el("option", { value, selected: this.view.access === value, disabled: about.refusals[value] !== "", title: about.refusals[value] || null }, words)));
    const hands = el("input", { type: "checkbox", id: "work_conserving", checked: this.view.work_conserving, onchange: () => this.set("work_conserving", hands.checked) });
    const most = el("input", { type: "number", id: "max_uploads", min: 1, step: 1, value: this.view.max_uploads ?? "", placeholder: "all", onchange: () => {
      const value = most.value === "" ? null : Number(most.value);
      if (value === null ? about.has_max_uploads : !Number.isInteger(value) || value < 1) most.value = this.view.max_uploads ?? ""; else this.set("max_uploads", value);
    } });
    this.access = access;
    this.isAlike = about.refusals.blocks === ""; // only blocks that are alike can be handed on
    this.hands = el("label", { class: "tick", for: "work_conserving", ...word("hand on") }, hands, " hand on free blocks");
    this.most = el("div", { class: "field" }, el("div", { class: "top" }, el("label", { for: "max_uploads", ...word("at most") }, "At most"), el("span", { class: "value" }, most, el("span", { class: "unit" }, "send"))));
    this.showSharing();
    return [this.labelled("Access", access, "access"), this.hands, this.most];
  }

  showSharing() {
    this.hands.hidden = !["one-block", "blocks"].includes(this.view.access) || !this.isAlike;
  }

  // Moves several settings at once, as if each had been set by hand.
  apply(changes) {
    Object.assign(this.view, changes);
    this.rebuild();
    return this.onChange();
  }

  choose(access) {
    this.access.value = access;
    if (this.view.access === access) return;
    this.hands.querySelector("input").checked = this.view.work_conserving = false;
    this.view.access = access;
    this.showSharing();
    this.onChange();
  }

  slider(slider, about) {
    const { key, label, isOptional } = slider;
    const first = this.view[key] ?? slider.around;
    const per = about.is_normalised ? 1 : slider.per ?? 1;
    const unit = about.is_normalised ? "" : slider.unit;
    const isMissing = this.view[key] === null && !isOptional;
    const ends = slider.whole ? [slider.whole[0], Math.max(slider.whole[1], first)] : slider.span.map((one) => (first || slider.floor || 1) * one);
    const toValue = (step) => (slider.whole ? step : neat(ends[0] * (ends[1] / ends[0]) ** (step / STEPS)));
    const toStep = (value) => (slider.whole ? value : Math.round((STEPS * Math.log(Math.max(value, ends[0]) / ends[0])) / Math.log(ends[1] / ends[0])));
    const range = el("input", { type: "range", id: `${key}-slider`, min: slider.whole ? ends[0] : 0, max: slider.whole ? ends[1] : STEPS, step: 1, value: toStep(first), disabled: isMissing, "aria-label": `${label.join("")} slider` });
    const field = el("input", { type: "number", id: key, min: 0, step: slider.whole ? 1 : "any", value: isMissing ? "" : shown(first / per), placeholder: isMissing ? "from file" : "", disabled: isMissing });
    const tick = isOptional && !about.has_deadline ? el("input", { type: "checkbox", id: `${key}-on`, "aria-label": "use a deadline", checked: this.view[key] !== null }) : null;
    const grey = () => { if (tick) range.disabled = field.disabled = !tick.checked; };
    // The first value exactly, when the slider comes back to it: 23 dBm are no round number of watts.
    range.addEventListener("input", () => {
      const value = Number(range.value) === toStep(first) ? first : toValue(Number(range.value));
      range.setAttribute("aria-valuetext", `${shown(value / per)} ${unit}`);
      field.value = shown(value / per);
      this.set(key, value);
    });
    field.addEventListener("change", () => {
      const value = Number(field.value) * per;
      if (field.value === "" || !Number.isFinite(value) || value < 0 || (slider.whole && !Number.isInteger(value))) { field.value = shown((this.view[key] ?? first) / per); return; }
      range.value = toStep(value);
      this.set(key, field.value === shown(first / per) ? first : value);
    });
    tick?.addEventListener("change", () => { grey(); this.set(key, tick.checked ? Number(field.value) * per : null); });
    grey();
    return el("div", { class: "field" },
      el("div", { class: "top" }, el("label", { for: key, ...word(slider.word ?? label[0]) }, el("b", {}, label[0]), label[1]),
        el("span", { class: "value" }, tick, field, el("span", { class: "unit" }, unit))),
      range);
  }

  set(key, value) {
    if (this.view[key] === value) return;
    this.view[key] = value;
    this.onChange();
  }
}

const neat = (value) => Number(value.toPrecision(3));
const shown = (value) => String(Number(value.toPrecision(5)));
