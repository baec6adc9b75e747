// Predictions of pictures, the least certain first, with a form to add each picture to a class.
import { classChoice } from "./choice.js";
import { askJson, byId, element, plural, thumbnail } from "./server.js";

const AT_ONCE = 4;
const waiting = [], rows = new Map();
let running = 0, done = 0, total = 0, host;

// `host.change` sends a change to the server; `host.classes` lists the class names.
export function listenForTries(given) {
  host = given;
  byId("files").onchange = (event) => {
    tryAll([...event.target.files]);
    event.target.value = "";
  };
  for (const kind of ["dragover", "drop", "dragleave"]) {
    byId("drop").addEventListener(kind, (event) => {
      event.preventDefault();
      byId("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop") tryAll([...event.dataTransfer.files]);
    });
  }
  byId("again").onclick = () => {
    byId("again").hidden = true;
    const files = [...rows.values()].filter((row) => !row.added).map((row) => row.file);
    for (const [element, row] of rows) if (!row.added) forget(element);
    tryAll(files);
    byId("files").focus();
  };
}

export function classesChanged() {
  for (const row of rows.values()) row.choice?.fill(host.classes());
}

// Offer to predict again, because the answers on the page are those of the old head.
export function headChanged() {
  byId("again").hidden = ![...rows.values()].some((row) => !row.added && row.sure >= 0);
}

function forget(row) {
  rows.delete(row);
  row.remove();
  done -= 1;
  total -= 1;
}

function tryAll(files) {
  waiting.push(...files);
  total += files.length;
  while (running < AT_ONCE && waiting.length) work();
  showTried();
}

async function work() {
  running += 1;
  while (waiting.length) {
    await tryOne(waiting.shift());
    done += 1;
    showTried();
  }
  running -= 1;
}

function showTried() {
  byId("tried").textContent = total ? `${done} of ${plural(total, "picture")}` : "";
}

async function tryOne(file) {
  const row = element("li");
  const figure = element("figure", "", row);
  const prediction = element("div", "", row, "said");
  let sure = -1, choice;
  try {
    const found = await askJson("/api/predict", { method: "POST", body: file });
    sure = found.top[0].probability;
    showPicture(file, figure);
    element("strong", found.answer, prediction, "answer");
    element("div", found.top.map((guess) => `${guess.name} ${(100 * guess.probability).toFixed(0)}\u00a0%`).join(", "), prediction);
    choice = addForm(file, row, prediction, found.top[0].name);
    const near = element("div", "", row, "near");
    for (const shot of found.nearest) {
      const own = element("figure", "", near);
      const picture = element("img", "", own);
      picture.alt = "";
      picture.src = thumbnail(shot.thumbnail);
      element("figcaption", `${shot.label} ${shot.cosine.toFixed(2)}`, own);
    }
  } catch (error) {
    element("span", error.message, prediction, "error");
  }
  element("figcaption", file.name, figure);
  const surer = [...byId("results").children].find((other) => rows.get(other).sure > sure);
  byId("results").insertBefore(row, surer ?? null);
  rows.set(row, { file, sure, choice, added: false });
}

function showPicture(file, figure) {
  const picture = element("img", "", figure);
  const address = URL.createObjectURL(file);
  picture.alt = "";
  picture.onload = picture.onerror = () => URL.revokeObjectURL(address);
  picture.src = address;
}

function addForm(file, row, parent, guess) {
  const form = element("form", "", parent);
  const choice = classChoice(form, "It is");
  choice.fill(host.classes(), guess);
  const button = element("button", "Add", form);
  button.setAttribute("aria-label", `Add ${file.name}`);
  const message = element("span", "", form);
  message.setAttribute("role", "status");
  form.onsubmit = async (event) => {
    event.preventDefault();
    const name = choice.name();
    button.disabled = true;
    choice.disable(true);
    message.className = "";
    message.textContent = `adding to ${name} …`;
    try {
      rows.get(row).added = true;
      await host.change(`/api/shots?${new URLSearchParams(choice.query())}`, file);
      message.textContent = `added to ${name}`;
    } catch (error) {
      rows.get(row).added = button.disabled = false;
      choice.disable(false);
      message.textContent = error.message;
      message.className = "error";
    }
  };
  return choice;
}
