// What the symbols mean, told where the pointer or the focus is on one.
import { tip } from "./dom.js";

export const WORDS = {
  objective: "U − η₁E − η₂T, what problem (P) makes as large as it can: what the uploads are worth, less what their joules and seconds cost.",
  U: "U: the contributions u of the devices that upload, summed up. Each says how much one update is expected to lower the loss.",
  E: "E: the joules of the round, computing of all devices and sending of those that upload.",
  T: "T: the seconds of the round: the slowest device computes, then the last upload ends.",
  "η₁": "η₁: what a joule costs, in units of u. Larger: fewer joules, fewer or slower uploads.",
  "η₂": "η₂: what a second costs, in units of u. Larger: quicker rounds, fewer uploads or more power.",
  "η₁E": "η₁E: what the round's joules cost.",
  "η₂T": "η₂T: what the round's seconds cost.",
  n: "n: the devices of the cell. All compute, some upload.",
  M: "M: radio blocks. With one block each, at most M devices upload.",
  p: "p: the most that a device can send with; the plan chooses less where that is enough.",
  B: "B: the bandwidth of one block. Twice the hertz, about twice the bits a second.",
  S: "S: the size of a model, what every upload has to send.",
  "T deadline": "A deadline for the whole round: downlink, computing, reports and uploads. What would come later is lost.",
  u: "u: what one device's update is worth, Eq. (21) of the paper. Real ones exist in a training run only; here they are drawn.",
  "mean of u": "The mean of the contributions that are drawn. Twice as much is as if joules and seconds cost half.",
  D: "D: the samples of every device. More samples, more cycles to compute.",
  seed: "Where the devices are, their shadowing and fading, and the contributions: one seed, one draw.",
  round: "The cell draws its channel anew in every round: which one is shown.",
  access: "How devices share the band: one block each (the paper's problem), whole blocks, shares, or the whole band in turn. Each has its own certified optimum.",
  "hand on": "A block that falls free goes to whoever would end last. The plan stays; nobody ends later.",
  "at most": "At most so many devices upload; empty: as many as are worth it.",
  uploads: "How many devices upload.",
  "δ": "δ: the upload delay, from when all have computed to when the last upload ends.",
  "rule loses": "What the best of the simple rules (threshold, value-rate, proportional fair) loses of the certified optimum.",
  "proven optimal": "The solver gives a bound that no allocation can exceed, and this one reaches it.",
  SINR: "SINR: how far the signal is above noise and interference.",
  shadowing: "Shadowing: what walls and trees take from a device's signal or, below 0 dB, leave it more than on average.",
  time: "Seconds on the cell's clock, since the run began.",
  energy: "Joules of all devices, since the run began.",
  loss: "Loss on held-out devices after they have adapted the model to their own data.",
};

// An element's attributes that let it be told: for pointers, for the keyboard, and for screen readers.
export const word = (name) => ({ "data-word": name, "aria-description": WORDS[name] });

const told = (node) => { const found = node.closest?.("[data-word], [data-told]"); return found && { found, text: found.dataset.told ?? WORDS[found.dataset.word] }; };

export function tellWords() {
  document.addEventListener("pointerover", (event) => { const one = told(event.target); if (one) tip(one.text, event.clientX, event.clientY); });
  document.addEventListener("pointerout", (event) => { if (told(event.target)) tip(null); });
  document.addEventListener("focusin", (event) => {
    const one = event.target.matches?.(":focus-visible") ? told(event.target) : null;
    if (!one) return;
    const box = one.found.getBoundingClientRect();
    tip(one.text, box.left, box.bottom);
  });
  document.addEventListener("focusout", (event) => { if (told(event.target)) tip(null); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip(null); });
}
