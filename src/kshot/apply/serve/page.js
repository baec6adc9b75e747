"use strict";
// Names come from files and folders, so they only ever become text, never markup.
const AT_ONCE = 4;
const token = new URLSearchParams(location.hash.slice(1)).get("token");
const byId = (id) => document.getElementById(id);
const waiting = [];
let running = 0, done = 0, total = 0, classes = [];

async function ask(path, options = {}) {
  const headers = { ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  if (options.body) headers["Content-Type"] = "application/octet-stream";
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("the server does not answer; is `kshot serve` still running?");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  throw new Error(told.error || `the server answered ${answer.status}`);
}

function element(tag, text, parent, className) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}

function showAbout(head) {
  classes = head.classes;
  const shots = head.shots.reduce((a, b) => a + b, 0);
  byId("about").textContent = `${head.method} on ${head.backbone}: ${classes.length} classes, ${shots} pictures${accuracy(head.accuracy)}`;
}

function accuracy(found) {
  if (!found) return "";
  const [value, low, high] = found.map((share) => (100 * share).toFixed(1));
  return `; left-out accuracy ${value} % [${low}, ${high}]`;
}

function enqueue(files) {
  for (const file of files) waiting.push(file);
  total += files.length;
  while (running < AT_ONCE && waiting.length) work();
  showProgress();
}

async function work() {
  running += 1;
  while (waiting.length) {
    await predict(waiting.shift());
    done += 1;
    showProgress();
  }
  running -= 1;
}

function showProgress() {
  byId("progress").textContent = total ? `${done} of ${total} pictures` : "";
}

async function predict(file) {
  const row = element("li", "", byId("results"));
  const figure = element("figure", "", row);
  const said = element("div", "", row, "said");
  try {
    const found = await (await ask("/api/predict", { method: "POST", body: file })).json();
    showPicture(file, figure);
    element("strong", found.answer, said, "answer");
    element("div", found.top.map((g) => `${g.name} ${(100 * g.probability).toFixed(0)} %`).join(", "), said);
    addForm(file, said, found.top[0].name);
    const near = element("div", "", row, "near");
    for (const shot of found.nearest) {
      const own = element("figure", "", near);
      element("img", "", own).src = `data:image/jpeg;base64,${shot.thumbnail}`;
      element("figcaption", `${shot.label} ${shot.cosine.toFixed(2)}`, own);
    }
  } catch (error) {
    element("span", error.message, said, "error");
  }
  element("figcaption", file.name, figure);
}

function showPicture(file, figure) {
  const picture = element("img", "", figure);
  const address = URL.createObjectURL(file);
  picture.onload = picture.onerror = () => URL.revokeObjectURL(address);
  picture.src = address;
}

function addForm(file, parent, guess) {
  const form = element("div", "", parent);
  const label = element("label", "It is ", form);
  const choice = element("select", "", label);
  for (const name of classes) element("option", name, choice).value = name;
  choice.value = guess;
  const button = element("button", "Add and refit", form);
  const told = element("span", "", form, "told");
  button.onclick = async () => {
    button.disabled = true;
    told.textContent = " refitting …";
    told.className = "told";
    try {
      const address = `/api/shots?label=${encodeURIComponent(choice.value)}`;
      showAbout(await (await ask(address, { method: "POST", body: file })).json());
      told.textContent = ` added to ${choice.value}`;
    } catch (error) {
      told.textContent = ` ${error.message}`;
      told.className = "told error";
      button.disabled = false;
    }
  };
}

byId("files").onchange = (event) => enqueue([...event.target.files]);
for (const kind of ["dragover", "drop", "dragleave"]) {
  byId("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") enqueue([...event.dataTransfer.files]);
  });
}
byId("download").onclick = async (event) => {
  event.preventDefault();
  try {
    const link = element("a");
    link.href = URL.createObjectURL(await (await ask("/api/head.safetensors")).blob());
    link.download = "head.safetensors";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  } catch (error) {
    byId("about").textContent = error.message;
  }
};
ask("/api/head").then((answer) => answer.json()).then(showAbout, (error) => (byId("about").textContent = error.message));
