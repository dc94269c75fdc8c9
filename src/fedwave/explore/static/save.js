// A picture as a file: SVG with its looks written into it, or PNG at twice its size.
import { el } from "./dom.js";

const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "font-size", "font-weight", "text-anchor", "dominant-baseline", "paint-order"];

export function saveButtons(name, picture, about) {
  return el("span", { class: "save" },
    el("button", { type: "button", class: "quiet", "data-save": "svg", title: "Save this picture as SVG", onclick: () => saveSvg(name, picture(), about()) }, "SVG"),
    el("button", { type: "button", class: "quiet", "data-save": "png", title: "Save this picture as PNG", onclick: () => savePng(name, picture(), about()) }, "PNG"));
}

export function saveText(name, text, type = "text/plain") {
  download(name, new Blob([text], { type }));
}

export function svgText(picture, about = "") {
  const copy = picture.cloneNode(true);
  const shown = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, index) => {
    const looks = getComputedStyle(shown[index]);
    for (const look of LOOKS) {
      const value = looks.getPropertyValue(look);
      if (value && value !== "normal" && value !== "auto") node.setAttribute(look, value);
    }
    node.removeAttribute("class");
  });
  const view = picture.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", view.width);
  copy.setAttribute("height", view.height);
  copy.setAttribute("font-family", "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif");
  const back = document.createElementNS(copy.namespaceURI, "rect");
  const card = picture.closest(".card");
  for (const [key, value] of Object.entries({ width: view.width, height: view.height, fill: getComputedStyle(card).backgroundColor })) back.setAttribute(key, value);
  copy.prepend(back);
  if (about) {
    const told = document.createElementNS(copy.namespaceURI, "metadata");
    told.textContent = about;
    copy.prepend(told);
  }
  return new XMLSerializer().serializeToString(copy);
}

function saveSvg(name, picture, about) {
  saveText(`${name}.svg`, svgText(picture, about), "image/svg+xml");
}

async function savePng(name, picture, about) {
  download(`${name}.png`, await pngOf(picture, about));
}

export async function pngOf(picture, about = "") {
  const view = picture.viewBox.baseVal;
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svgText(picture, about)], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = el("canvas", { width: 2 * view.width, height: 2 * view.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function download(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
