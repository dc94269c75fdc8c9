// The band over time: a rectangle for every piece of an upload, from when to when and over which blocks.
import { Chart, fix } from "./chart.js";
import { dbm, digits, pointIn, si, svg, tip } from "./dom.js";

const LABEL = { width: 7, height: 12 }; // what a digit of a device's number takes

export const SHARES = {
  "one-block": "one block each, kept until its upload ends",
  blocks: "whole blocks, several for one device where that pays",
  "shared-band": "a share of the band for each, all at once",
  tdma: "the whole band for each in turn",
};

export function schedulePicture({ schedule: given, method, numBlocks, units, ids = null }) {
  const schedule = ending(given);
  const unit = (name) => (units ? name : "");
  const end = schedule.end_s.reduce((a, b) => Math.max(a, b), 0);
  const chart = new Chart({ width: 480, height: 290, label: "The band over time: who sends when on which blocks",
    x: { label: `time since the first upload began${units ? " [s]" : ""}`, domain: [0, end || 1], format: (value) => digits(value, 3) },
    y: { label: "blocks of the band", domain: [0, numBlocks], format: (value) => (Number.isInteger(value) ? digits(value, 4) : "") } });
  const order = [...new Set(schedule.device)];
  const began = new Map();
  schedule.device.forEach((device, k) => began.set(device, Math.min(began.get(device) ?? Infinity, schedule.start_s[k])));
  const own = new Set(schedule.device.map((device, k) => (schedule.start_s[k] === began.get(device) ? `${device}:${schedule.first[k]}` : null)));
  const parity = new Map(order.map((device, k) => [device, k % 2]));
  const boxes = schedule.device.map((device, k) => {
    const x = chart.x(schedule.start_s[k]), y = chart.y(schedule.first[k] + schedule.width[k]);
    const box = { device, x, y, width: chart.x(schedule.end_s[k]) - x, height: chart.y(schedule.first[k]) - y };
    const isTaken = began.get(device) < schedule.start_s[k] && !own.has(`${device}:${schedule.first[k]}`);
    const name = String(ids ? ids[device] : device);
    const text = [`device ${name}`, `${digits(schedule.width[k], 3)} block${schedule.width[k] === 1 ? "" : "s"}, from ${digits(schedule.first[k], 3)} on`,
      `${si(schedule.start_s[k], unit("s"))} to ${si(schedule.end_s[k], unit("s"))}`, `power ${dbm(schedule.power_w[k], unit("W"))}`, isTaken ? "blocks that others have left" : null].filter(Boolean).join("\n");
    chart.inside.append(svg("rect", { x: fix(x), y: fix(y), width: fix(Math.max(box.width, 0.5)), height: fix(Math.max(box.height, 0.5)), class: `piece f-${method} ${parity.get(device) ? "odd" : ""} ${isTaken ? "taken" : ""}`, "data-device": device }));
    if (box.width > LABEL.width * name.length + 4 && box.height > LABEL.height) chart.inside.append(svg("text", { x: fix(x + box.width / 2), y: fix(y + box.height / 2 + 4), "text-anchor": "middle", class: "on-piece" }, name));
    chart.spots.push({ x: x + box.width / 2, y: y + box.height / 2, text });
    return { ...box, text };
  });
  const light = (device) => { for (const node of chart.node.querySelectorAll(".piece")) node.classList.toggle("on", Number(node.dataset.device) === device); };
  chart.point = (event) => {
    const [x, y] = pointIn(chart.node, event);
    const found = boxes.find((one) => x >= one.x && x <= one.x + one.width && y >= one.y && y <= one.y + one.height);
    light(found ? found.device : null);
    tip(found ? found.text : null, event.clientX, event.clientY);
  };
  chart.node.addEventListener("pointerleave", () => light(null));
  chart.node.dataset.pieces = schedule.device.length;
  return chart.node;
}

// How much of the band's hertz and seconds is sent on, until the last upload ends.
export function usedShare(given, numBlocks) {
  const schedule = ending(given);
  const end = schedule.end_s.reduce((a, b) => Math.max(a, b), 0);
  const used = schedule.device.reduce((sum, _, k) => sum + schedule.width[k] * (schedule.end_s[k] - schedule.start_s[k]), 0);
  return end > 0 ? used / (numBlocks * end) : 0;
}

// Without uploads that never end: what a rule sends without a rate.
function ending(schedule) {
  const kept = schedule.end_s.map((end, k) => (end === null ? -1 : k)).filter((k) => k >= 0);
  return Object.fromEntries(Object.entries(schedule).map(([name, values]) => [name, kept.map((k) => values[k])]));
}
