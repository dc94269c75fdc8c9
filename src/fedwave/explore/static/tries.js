// "Try this": a few moves that show something, each with one click, what came of it, and the way back.
import { digits, el, si } from "./dom.js";

const times = (key, factor) => (view) => ({ [key]: Number((view[key] * factor).toPrecision(4)) });
const TRIES = [
  { id: "energy", words: "Joules cost 10 ×", move: times("energy_weight", 10) },
  { id: "hurry", words: "Seconds cost 10 ×", move: times("delay_weight", 10) },
  { id: "blocks", words: "Half the blocks", move: (view) => ({ num_blocks: Math.max(1, Math.floor(view.num_blocks / 2)) }) },
  { id: "share", words: "Share the band", move: (view) => ({ access: view.access === "shared-band" ? "one-block" : "shared-band", work_conserving: false, max_uploads: null }), needs: "shared-band" },
  { id: "draw", words: "Another draw", move: (view) => ({ seed: view.seed + 1 }) },
];

export class Tries {
  constructor(box, { read, apply }) {
    Object.assign(this, { read, apply });
    this.told = el("span", { class: "told", role: "status" });
    this.back = el("button", { type: "button", id: "try-back", hidden: true, onclick: () => this.undo() }, "Back");
    this.row = el("span", { class: "moves" });
    box.replaceChildren(el("b", {}, "Try this"), this.row, this.told, this.back);
  }

  offer(refusals) {
    this.row.replaceChildren(...TRIES.filter((one) => !one.needs || !refusals[one.needs]).map((one) =>
      el("button", { type: "button", id: `try-${one.id}`, onclick: () => this.run(one) }, one.words)));
    this.forget();
  }

  forget() { this.told.textContent = ""; this.back.hidden = true; this.before = null; }

  async run(one) {
    const view = this.read().view, before = this.read().optimal, changes = one.move(view);
    this.before = Object.fromEntries(Object.keys(changes).map((key) => [key, view[key]]));
    await this.apply(changes);
    const { optimal: after, unit } = this.read();
    const from = (name, show) => `${show(before[name])} → ${show(after[name])}`;
    this.told.textContent = `Uploads ${from("num_selected", String)}, E ${from("energy_j", (value) => si(value, unit("J")))}, T ${from("delay_s", (value) => si(value, unit("s")))}, objective ${from("objective", (value) => digits(value, 4))}.`;
    this.back.hidden = false;
  }

  async undo() {
    const back = this.before;
    this.forget();
    if (back) await this.apply(back);
  }
}
