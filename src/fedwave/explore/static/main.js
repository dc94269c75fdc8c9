// Starts the page: the tabs, light or dark, and the first question.
import { ask, showError } from "./ask.js";
import { CellTab } from "./cell.js";
import { find } from "./dom.js";
import { RunTab } from "./runs.js";
import { tellWords } from "./words.js";

const root = document.documentElement;
const TABS = ["cell", "runs"];
let runs;

function show(name, { focus = false } = {}) {
  for (const one of TABS) {
    const isShown = one === name;
    find(one).hidden = !isShown;
    find(`tab-${one}`).setAttribute("aria-selected", String(isShown));
    find(`tab-${one}`).tabIndex = isShown ? 0 : -1;
    if (isShown && focus) find(`tab-${one}`).focus();
  }
  find("status").classList.toggle("away", name !== "cell");
  if (name === "runs") runs?.watch();
}

function setTheme(theme) {
  root.dataset.theme = theme;
  find("theme").textContent = theme === "dark" ? "Light" : "Dark";
}

setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
find("theme").addEventListener("click", () => { setTheme(root.dataset.theme === "dark" ? "light" : "dark"); if (runs?.runs) runs.detail().catch(showError); });
for (const name of TABS) {
  find(`tab-${name}`).addEventListener("click", () => show(name));
  find(`tab-${name}`).addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") show(TABS[(TABS.indexOf(name) + 1) % 2], { focus: true });
  });
}

try {
  tellWords();
  const start = await ask("start");
  const tab = new CellTab(start);
  document.querySelector("h1").title = `fedwave ${start.version}`;
  runs = new RunTab(find("runs"), start);
  show(start.first_tab);
  await tab.open(start.first_source);
} catch (error) {
  showError(error);
  document.body.dataset.state = "failed";
}
