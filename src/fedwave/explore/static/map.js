// The map: devices around the base station, blocks as columns below, a line for every upload.
import { dbm, digits, pointIn, si, svg, tip, toScreen } from "./dom.js";
import { fix } from "./chart.js";
import { word } from "./words.js";

const WIDTH = 480, HEIGHT = 590, CENTRE = [240, 236], RADIUS = 192;
const COLUMNS = { left: 4, right: 476, base: 564, tallest: 72, least: 8 };
const BINS = 7; // shades of shadowing

export class CellMap {
  constructor({ units = true } = {}) {
    this.units = units;
    this.places = svg("g");
    this.blocks = svg("g");
    this.links = svg("g");
    this.marks = svg("g");
    this.node = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: 0, role: "img", class: "map",
      "aria-label": "Map of the devices, radio blocks as columns below, a line for every upload. Arrow keys go through the uploads." },
    this.places, this.links, this.blocks, this.marks);
    this.node.addEventListener("pointermove", (event) => this.point(event));
    this.node.addEventListener("pointerleave", () => this.light(null));
    this.node.addEventListener("blur", () => this.light(null));
    this.node.addEventListener("keydown", (event) => this.step(event));
    this.uploads = null;
  }

  setPlaces(given) {
    const isShadowed = given.shadowing_db?.some((one) => one !== 0);
    const map = { ...given, shadowing_db: isShadowed ? given.shadowing_db : null };
    this.map = map;
    this.spots = layout(map);
    const size = map.num_devices > 3000 ? 1.6 : map.num_devices > 600 ? 2.6 : map.num_devices > 150 ? 4 : 5.2;
    this.size = size;
    const rings = this.rings();
    this.places.replaceChildren(...rings.filter((one) => one.tagName === "circle"), ...this.devices(size), ...rings.filter((one) => one.tagName !== "circle"), ...legend(map, this.spots.isMap), station());
  }

  rings() {
    if (!this.spots.isMap) return [svg("circle", { class: "ring", cx: CENTRE[0], cy: CENTRE[1], r: RADIUS }),
      svg("text", { x: CENTRE[0], y: CENTRE[1] + RADIUS + 15, "text-anchor": "middle", class: "tiny" }, "no geometry: the weaker the channel, the farther out")];
    const step = niceStep(this.spots.reach);
    const found = [];
    for (let metres = step; metres <= this.spots.reach * 1.001; metres += step) {
      const r = metres * this.spots.perMetre;
      found.push(svg("circle", { class: "ring", cx: CENTRE[0], cy: CENTRE[1], r: fix(r) }),
        svg("text", { x: CENTRE[0] + r * 0.7071 + 3, y: CENTRE[1] + r * 0.7071 + 10, class: "tiny halo" }, si(metres, "m")));
    }
    return found;
  }

  // One path for each shade and shape, so ten thousand devices are a dozen elements.
  devices(size) {
    const paths = new Map();
    this.spots.xy.forEach(([x, y], device) => {
      const isBlocked = this.map.is_line_of_sight && !this.map.is_line_of_sight[device];
      const key = `${isBlocked ? "nlos" : "los"} sh${shade(this.map, device)}`;
      paths.set(key, (paths.get(key) ?? "") + (isBlocked ? triangle(x, y, size) : disc(x, y, size * 0.86)));
    });
    return [...paths].map(([looks, d]) => svg("path", { d, class: looks, opacity: this.map.num_devices > 600 ? 0.75 : 0.95 }));
  }

  // Below the map: blocks as columns, or the band cut into shares, or the time cut into turns.
  setUploads(uploads, noise, method, { ids = null, access = "one-block" } = {}) {
    Object.assign(this, { uploads, noise, ids, method, access });
    this.columns = { "shared-band": shares, tdma: turns }[access]?.(uploads, noise.length) ?? blocks(uploads, noise);
    const inUse = this.columns.filter((one) => one.k >= 0);
    const left = { "shared-band": `the band, ${noise.length} blocks wide, in ${inUse.length} shares`, tdma: `the time, ${inUse.length} turns over the whole band` }[access] ?? `${noise.length} blocks, ${inUse.length} in use`;
    const right = { "shared-band": "width: the share of each", tdma: `width: the time of each, ${si(endOf(uploads), this.units ? "s" : "")} in all` }[access] ?? spread(noise);
    this.blocks.replaceChildren(
      svg("text", { x: COLUMNS.left, y: COLUMNS.base + 20 }, left),
      svg("text", { x: COLUMNS.right, y: COLUMNS.base + 20, "text-anchor": "end", class: "tiny" }, right),
      ...this.columns.map((one, block) => svg("rect", { x: fix(one.x), y: fix(one.y), width: fix(one.width), height: fix(COLUMNS.base - one.y), rx: Math.min(2, one.width / 3),
        class: `column ${one.k >= 0 ? `used f-${method} ${one.isOdd ? "odd" : ""}` : ""}`, "data-block": block, "data-k": one.k })));
    this.links.replaceChildren(...uploads.device.map((device, k) => svg("path", { d: this.curve(device, k), class: `link s-${method} ${uploads.success[k] ? "" : "lost"}`, "data-k": k })));
    this.marks.replaceChildren(...uploads.device.map((device, k) => {
      const [x, y] = this.spots.xy[device];
      return svg("circle", { cx: fix(x), cy: fix(y), r: Math.max(this.size + 2.6, 4.6), class: `chosen s-${method}`, "data-k": k });
    }));
    this.node.dataset.assignment = uploads.device.map((device, k) => `${device}:${uploads.block[k]}`).join(" ");
    this.node.dataset.held = uploads.width.join(" ");
    this.at = undefined;
  }

  curve(device, k) {
    const [x, y] = this.spots.xy[device];
    const own = this.columns.filter((one) => one.k === k), first = own[0], last = own.at(-1);
    if (!first) return `M${fix(x)} ${fix(y)}`;
    const middle = (first.x + last.x + last.width) / 2, top = Math.min(first.y, last.y);
    const bend = Math.max(50, (top - y) * 0.5);
    return `M${fix(x)} ${fix(y)}C${fix(x)} ${fix(y + bend)} ${fix(middle)} ${fix(top - bend * 0.75)} ${fix(middle)} ${fix(top)}`;
  }

  describe(device) {
    const { map, uploads } = this;
    const k = uploads ? uploads.device.indexOf(device) : -1;
    const unit = (name) => (this.units ? name : "");
    const lines = [`device ${this.ids ? this.ids[device] : device}`];
    if (map.distance_m) {
      const sight = map.is_line_of_sight ? (map.is_line_of_sight[device] ? ", line of sight" : ", no line of sight") : "";
      lines.push(`${digits(map.distance_m[device], 3)} m${sight}`);
      if (map.shadowing_db) lines.push(`shadowing ${digits(map.shadowing_db[device], 3)} dB`);
    }
    if (map.contribution) lines.push(`contribution ${digits(map.contribution[device])}`);
    if (k >= 0) lines.push(this.holding(k), `power ${dbm(uploads.power_w[k], this.units)}`, `SINR ${digits(uploads.sinr_db[k], 3)} dB`,
      `upload ${si(uploads.delay_s[k], unit("s"))}, ${si(uploads.energy_j[k], unit("J"))}`);
    else if (map.best_sinr_db) lines.push(`no block; at full power ${digits(map.best_sinr_db[device], 3)} dB at best`);
    else lines.push("no block");
    if (k >= 0 && uploads.success[k] === 0) lines.push("its upload is lost");
    else if (k >= 0 && uploads.success[k] < 1) lines.push(`arrives with probability ${digits(uploads.success[k], 3)}`);
    return lines.join("\n");
  }

  // What an upload holds, in words.
  holding(k) {
    const { block, width, start_s: start, delay_s: delay } = this.uploads, unit = this.units ? "s" : "";
    if (this.access === "shared-band") return `${digits(width[k], 3)} of ${this.noise.length} blocks' hertz`;
    if (this.access === "tdma") return `its turn: ${si(start[k], unit)} to ${si(start[k] + (delay[k] ?? 0), unit)}`;
    return width[k] > 1 ? `blocks ${block[k]} to ${block[k] + Math.round(width[k]) - 1}` : `block ${block[k]}`;
  }

  point(event) {
    if (!this.uploads) return;
    const [x, y] = pointIn(this.node, event);
    const block = this.columns.findIndex((one) => x >= one.x && x <= one.x + one.width && y > COLUMNS.base - COLUMNS.tallest - 14 && y < COLUMNS.base + 4);
    if (block >= 0) {
      const { k } = this.columns[block], isBlock = this.access === "one-block" || this.access === "blocks";
      const head = isBlock ? `block ${block}: noise and interference ${dbm(this.noise[block], this.units)}` : this.access === "tdma" ? "a turn" : "a share of the band";
      this.light(k, k < 0 ? `${head}\nfree` : `${head}\n${this.describe(this.uploads.device[k])}`, event.clientX, event.clientY);
      return;
    }
    let best = -1, nearest = 14 ** 2;
    this.spots.xy.forEach(([a, b], device) => {
      const apart = (a - x) ** 2 + (b - y) ** 2;
      if (apart < nearest) [best, nearest] = [device, apart];
    });
    if (best < 0) this.light(null);
    else this.light(this.uploads.device.indexOf(best), this.describe(best), event.clientX, event.clientY);
  }

  step(event) {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") this.light(null);
    if (!move || !this.uploads || this.uploads.device.length === 0) return;
    event.preventDefault();
    const count = this.uploads.device.length;
    this.at = ((this.at ?? (move > 0 ? -1 : 0)) + move + count) % count;
    const device = this.uploads.device[this.at];
    this.light(this.at, this.describe(device), ...toScreen(this.node, ...this.spots.xy[device]));
  }

  light(k, text = null, x = 0, y = 0) {
    for (const node of this.node.querySelectorAll(".on")) node.classList.remove("on");
    if (k !== null && k >= 0) for (const node of this.node.querySelectorAll(`[data-k="${k}"]`)) node.classList.add("on");
    tip(text, x, y);
  }
}

function layout(map) {
  if (map.position_m) {
    const [xs, ys] = map.position_m;
    const reach = Math.max(1e-9, ...sample(xs.map((x, k) => Math.hypot(x, ys[k]))));
    const perMetre = RADIUS / reach;
    return { isMap: true, reach, perMetre, xy: xs.map((x, k) => [CENTRE[0] + x * perMetre, CENTRE[1] - ys[k] * perMetre]) };
  }
  // Ranked by gain from the middle outwards, turned by the golden angle so that nobody covers anybody.
  const count = map.num_devices;
  const order = [...Array(count).keys()];
  if (map.gain_db) order.sort((a, b) => (map.gain_db[b] ?? -1e9) - (map.gain_db[a] ?? -1e9));
  const xy = Array(count);
  order.forEach((device, rank) => {
    const r = RADIUS * (0.12 + 0.86 * Math.sqrt((rank + 0.5) / count)), angle = rank * 2.39996323;
    xy[device] = [CENTRE[0] + r * Math.cos(angle), CENTRE[1] + r * Math.sin(angle)];
  });
  return { isMap: false, xy };
}

// The largest values, without spreading a long list over arguments.
const sample = (values) => [values.reduce((a, b) => Math.max(a, b), 0)];

function shade(map, device) {
  if (map.shadowing_db) return Math.max(0, Math.min(BINS - 1, Math.round(map.shadowing_db[device] / 4) + 3));
  if (!map.gain_db) return 3;
  map.ranks ??= ranks(map.gain_db);
  return BINS - 1 - Math.min(BINS - 1, Math.floor(map.ranks[device] * BINS));
}

function ranks(values) {
  const order = [...values.keys()].sort((a, b) => (values[a] ?? -1e9) - (values[b] ?? -1e9));
  const found = Array(values.length);
  order.forEach((device, rank) => { found[device] = rank / values.length; });
  return found;
}

function blocks(uploads, noise) {
  const room = (COLUMNS.right - COLUMNS.left) / Math.max(noise.length, 1);
  const width = Math.min(room * 0.72, 26);
  const level = noise.map((one) => 10 * Math.log10(one));
  const low = level.reduce((a, b) => Math.min(a, b), Infinity), high = level.reduce((a, b) => Math.max(a, b), -Infinity);
  const owner = Array(noise.length).fill(-1);
  uploads.block.forEach((block, k) => owner.fill(k, block, block + Math.max(Math.round(uploads.width[k]), 1)));
  return level.map((one, block) => {
    const middle = COLUMNS.left + room * (block + 0.5);
    const height = COLUMNS.least + (high - low > 1e-9 ? (one - low) / (high - low) : 0.5) * (COLUMNS.tallest - COLUMNS.least);
    const joins = owner[block] >= 0 && owner[block] === owner[block + 1]; // blocks of one device touch
    return { x: middle - width / 2, width: joins ? room : width, y: COLUMNS.base - height, k: owner[block], isOdd: uploads.width.some((held) => held > 1.5) && owner[block] % 2 === 1 };
  });
}

// Parts of a line side by side, each beginning and ending at a share of it; what nobody holds is left grey.
function parts(uploads, begin, length, whole) {
  const scale = (COLUMNS.right - COLUMNS.left) / whole, y = COLUMNS.base - COLUMNS.tallest * 0.6;
  const found = uploads.device.map((_, k) => ({ x: COLUMNS.left + begin[k] * scale, width: Math.max(length[k] * scale - 1, 0.5), y, k, isOdd: k % 2 === 1 }));
  const rest = COLUMNS.right - found.reduce((last, one) => Math.max(last, one.x + one.width), COLUMNS.left);
  return rest > 2 ? [...found, { x: COLUMNS.right - rest + 1, width: rest - 1, y, k: -1 }] : found;
}

const shares = (uploads, count) => parts(uploads, uploads.block, uploads.width, count);
const turns = (uploads) => parts(uploads, uploads.start_s, uploads.delay_s.map((one) => one ?? 0), endOf(uploads) || 1);
const endOf = (uploads) => uploads.device.reduce((last, _, k) => Math.max(last, uploads.start_s[k] + (uploads.delay_s[k] ?? 0)), 0);

function spread(noise) {
  const level = noise.map((one) => 10 * Math.log10(one));
  const apart = level.reduce((a, b) => Math.max(a, b), -Infinity) - level.reduce((a, b) => Math.min(a, b), Infinity);
  return apart > 0.01 ? `taller: noisier, by up to ${digits(apart, 2)} dB` : "all alike: noise and interference are the same";
}

function legend(map, isMap) {
  const found = [];
  let y = 16;
  const entry = (mark, words) => { found.push(mark, svg("text", { x: 26, y: y + 4 }, words)); y += 19; };
  if (map.is_line_of_sight) {
    entry(svg("path", { d: disc(14, y, 5), class: "sh3" }), "line of sight");
    entry(svg("path", { d: triangle(14, y, 5.5), class: "sh3" }), "no line of sight");
  }
  entry(svg("circle", { cx: 14, cy: y, r: 6.5, class: "chosen s-optimal" }), "uploads");
  const title = map.shadowing_db ? "shadowing" : map.gain_db ? "channel" : null;
  if (title && (isMap || map.gain_db)) {
    const [left, right] = map.shadowing_db ? ["−12 dB", "+12 dB"] : ["strong", "weak"];
    found.push(svg("text", { x: WIDTH - 14, y: 20, "text-anchor": "end", ...(map.shadowing_db ? word("shadowing") : {}) }, title));
    for (let bin = 0; bin < BINS; bin++) found.push(svg("rect", { x: WIDTH - 14 - 16 * (BINS - bin), y: 27, width: 15, height: 9, rx: 2, class: `sh${bin}` }));
    found.push(svg("text", { x: WIDTH - 14 - 16 * BINS, y: 50, class: "tiny" }, left), svg("text", { x: WIDTH - 15, y: 50, "text-anchor": "end", class: "tiny" }, right));
  }
  return found;
}

const station = () => svg("g", { transform: `translate(${CENTRE[0]} ${CENTRE[1]})` },
  svg("path", { class: "mast halo", d: "M0 -9L-6 11M0 -9L6 11M-4 4L4 4" }), svg("circle", { class: "station", cy: -10, r: 3.4 }));
const disc = (x, y, r) => `M${fix(x - r)} ${fix(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
const triangle = (x, y, r) => `M${fix(x)} ${fix(y - r)}l${fix(r * 0.95)} ${fix(r * 1.65)}h${fix(-r * 1.9)}z`;

function niceStep(reach) {
  const power = 10 ** Math.floor(Math.log10(reach));
  return [0.2, 0.5, 1].map((one) => one * power).find((one) => reach / one <= 5.01) ?? power * 2;
}
