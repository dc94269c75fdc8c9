// The same cell shared in every way: what the optimum is worth in each, and what the best simple rule loses.
import { digits, el, si } from "./dom.js";
import { word } from "./words.js";

export const ACCESSES = { "one-block": "One block each", blocks: "Whole blocks", "shared-band": "Shared band", tdma: "One after another" };
export const SIMPLE = ["threshold", "value-rate", "proportional-fair"];

// The best of the simple rules, and what it loses against the optimum as a share; null where nothing can be said.
export function bestSimple(methods) {
  const simple = SIMPLE.map((name) => methods[name]).filter(Boolean);
  const best = methods.optimal.objective;
  if (simple.length === 0 || !(best > 0)) return null;
  const top = simple.reduce((one, other) => (other.objective > one.objective ? other : one));
  return { method: top.method, lost: Math.max(0, 1 - top.objective / best) };
}

export const lossText = (lost) => (lost < 1e-6 ? "nothing" : `${digits(100 * lost, 2)} %`);

// What an access wants that the cell has not; the whole sentence is told beside the mouse.
const whyNot = (refusal) => refusal.replace(/^access "[^"]*" /, "").split(/[,.] /)[0];

export function accessTable({ found, refusals, chosen, unit, onChoose }) {
  const head = ["access", "objective", "energy", "delay", "uploads", "rule loses"];
  const rows = Object.keys(ACCESSES).map((access) => {
    const name = el("td", {}, ACCESSES[access]);
    if (refusals[access]) return el("tr", { class: "refused", "data-access": access, "data-told": refusals[access], tabindex: 0 }, name, el("td", { class: "word", colspan: head.length - 1 }, `not here: ${whyNot(refusals[access])}`));
    const methods = found[access];
    if (!methods) return el("tr", { "data-access": access }, name, ...head.slice(1).map(() => el("td", {}, "…")));
    const { optimal } = methods, simple = bestSimple(methods);
    const choose = () => onChoose(access);
    return el("tr", { class: "choice", tabindex: 0, role: "button", "aria-pressed": String(access === chosen), "data-access": access, onclick: choose,
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } },
    name, ...[digits(optimal.objective), si(optimal.energy_j, unit("J")), si(optimal.delay_s, unit("s")), optimal.num_selected, simple ? lossText(simple.lost) : "–"].map((words) => el("td", {}, words)));
  });
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head.map((words) => el("th", { ...word({ energy: "E", delay: "T" }[words] ?? words), tabindex: 0 }, words)))), el("tbody", {}, rows)));
}
