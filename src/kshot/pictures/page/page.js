// Predictions of pictures, the least certain first, with a form to add each picture to a class.
import { keep, kept, reduced } from "./kept.js";
import { askJson, byId, element, plural } from "./server.js";

const AT_ONCE = 4;
const waiting = [], rows = new Map();
let head = null, running = 0, done = 0, total = 0;

function showAbout(found) {
  head = found;
  const pictures = head.shots.reduce((a, b) => a + b, 0);
  byId("about").textContent =
    `${head.method} on ${head.backbone}: ${head.classes.length} classes, ${plural(pictures, "picture")}${accuracy(head.accuracy)}`;
  byId("classes").replaceChildren(...head.classes.map((name) => new Option(name)));
}

function accuracy(found) {
  if (!found) return "";
  const [value, low, high] = found.map((share) => (100 * share).toFixed(0));
  return `; about ${value} % of new pictures right [${low}, ${high}]`;
}

function showTried() {
  byId("tried").textContent = total ? `${done} of ${plural(total, "picture")}` : "";
  byId("clear").hidden = !total;
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
  if (!running) keep([...rows.values()].filter((row) => !row.added).map((row) => row.file));
}

async function tryOne(given) {
  const file = await reduced(given);
  const row = element("li"), figure = element("figure", "", row), answer = element("div", "", row, "said");
  let sure = -1;
  try {
    const found = await askJson("/api/predict", { method: "POST", body: file });
    sure = found.top[0].probability;
    showPicture(file, figure);
    element("strong", found.answer, answer, "answer");
    element("div", found.top.map((guess) => `${guess.name} ${(100 * guess.probability).toFixed(0)}\u00a0%`).join(", "), answer);
    if (found.one_of.length > 1) element("div", `one of: ${found.one_of.join(", ")}`, answer, "soft");
    addForm(file, row, answer, found.top[0].name);
    const near = element("div", "", row, "near");
    for (const shot of found.nearest) {
      const figure = element("figure", "", near), picture = element("img", "", figure);
      picture.alt = "";
      picture.src = `data:image/jpeg;base64,${shot.thumbnail}`;
      element("figcaption", `${shot.label} ${shot.cosine.toFixed(2)}`, figure);
    }
  } catch (error) {
    element("span", error.message, answer, "error");
  }
  element("figcaption", file.name, figure);
  const surer = [...byId("results").children].find((other) => rows.get(other).sure > sure);
  byId("results").insertBefore(row, surer ?? null);
  rows.set(row, { file, sure, added: false });
}

function showPicture(file, figure) {
  const picture = element("img", "", figure), address = URL.createObjectURL(file);
  picture.alt = "";
  picture.onload = picture.onerror = () => URL.revokeObjectURL(address);
  picture.src = address;
}

function addForm(file, row, parent, guess) {
  const form = element("form", "", parent);
  const input = element("input", "", element("label", "It is ", form));
  Object.assign(input, { type: "text", required: true, maxLength: 200, size: 14, value: guess, autocomplete: "off" });
  input.setAttribute("list", "classes");
  const button = element("button", "Add", form), message = element("span", "", form);
  message.setAttribute("role", "status");
  button.setAttribute("aria-label", `Add ${file.name}`);
  const isNew = () => !head.classes.includes(input.value.trim());
  input.onfocus = () => input.select();
  input.oninput = () => (button.textContent = isNew() ? "Add as a new class" : "Add");
  form.onsubmit = async (event) => {
    event.preventDefault();
    const label = input.value.trim();
    input.disabled = button.disabled = true;
    message.className = "";
    message.textContent = "learning …";
    try {
      showAbout(await askJson(`/api/shots?${new URLSearchParams({ label, ...(isNew() ? { new: "1" } : {}) })}`, { method: "POST", body: file }));
      rows.get(row).added = true;
      message.textContent = `added to ${label}`;
      byId("again").hidden = ![...rows.values()].some((other) => !other.added && other.sure >= 0);
    } catch (error) {
      input.disabled = button.disabled = false;
      message.textContent = error.message;
      message.className = "error";
    }
  };
}

function forget(which) {
  const files = [];
  for (const [row, one] of rows) {
    if (!which(one)) continue;
    files.push(one.file);
    rows.delete(row);
    row.remove();
    done -= 1;
    total -= 1;
  }
  showTried();
  return files;
}

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
  tryAll(forget((row) => !row.added));
  byId("files").focus();
};
byId("clear").onclick = () => {
  forget(() => true);
  keep([]);
};
askJson("/api/head").then(async (found) => {
  showAbout(found);
  tryAll(await kept());
}, (error) => (byId("about").textContent = error.message));
