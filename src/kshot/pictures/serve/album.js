// The head's pictures by class: choose, move, remove.
import { classChoice } from "./choice.js";
import { askJson, byId, element, plural, thumbnail } from "./server.js";

// With more pictures than this, classes start closed.
const MOST_OPEN = 120;
const chosen = new Set(), shown = new Map();
let host, target;

export function listenForChoices(given) {
  host = given;
  target = classChoice(byId("move-to"), "Move to");
  target.select.id = "target";
  byId("chosen").onsubmit = (event) => {
    event.preventDefault();
    send("move", [...chosen], target.query());
  };
  byId("remove").onclick = () => send("remove", [...chosen]);
  byId("none").onclick = chooseNone;
  for (const place of [byId("class-list"), byId("doubtful-list")]) {
    place.addEventListener("change", (event) => choose(event.target));
    place.addEventListener("keydown", onKey);
  }
  list(byId("doubtful-list"), null);
}

// Add new classes, remove old ones, and refresh the open ones.
export async function showAlbum(head) {
  const names = head.album.map((one) => one.label), place = byId("class-list");
  const known = new Map([...place.children].map((details) => [shown.get(details).label, details]));
  const open = known.size > 0 || head.album.reduce((sum, one) => sum + one.pictures, 0) <= MOST_OPEN;
  target.fill(names);
  for (const [name, details] of known) {
    if (names.includes(name)) continue;
    shown.delete(details);
    details.remove();
  }
  head.album.forEach((one, at) => {
    const details = known.get(one.label) ?? classDetails(one.label, open);
    if (place.children[at] !== details) place.insertBefore(details, place.children[at] ?? null);
    details.querySelector("summary span").textContent =
      one.pictures ? ` ${plural(one.pictures, "picture")}` : " no picture yet: known by its name alone";
  });
  await Promise.all([...shown.keys()].map(fill));
  showChosen();
}

function classDetails(name, open) {
  const details = element("details");
  details.open = open;
  element("span", "", element("summary", name, details));
  list(details, name);
  const drop = element("button", `Remove the class ${name}`, details);
  drop.type = "button";
  drop.onclick = () => {
    byId("undo").focus();
    host.change(`/api/classes/remove?${new URLSearchParams({ label: name })}`).catch(() => {});
  };
  details.addEventListener("toggle", () => fill(details));
  return details;
}

function list(place, label) {
  const tiles = element("ul", "", place, "tiles");
  tiles.setAttribute("aria-label", label === null ? "Doubtful pictures" : `Pictures of ${label}`);
  const more = element("button", "", place);
  more.type = "button";
  more.hidden = true;
  more.onclick = async () => {
    shown.get(place).pages += 1;
    const first = tiles.children.length;
    await fill(place);
    tiles.children[first]?.querySelector("input").focus();
  };
  shown.set(place, { label, tiles, more, pages: 1, call: 0 });
}

async function fill(place) {
  const view = shown.get(place);
  if (!view) return;
  if (view.label !== null && !place.open) return;
  const call = (view.call += 1), pictures = [];
  let total = 0;
  for (let page = 0; page < view.pages; page += 1) {
    const query = new URLSearchParams({ start: pictures.length, ...(view.label === null ? {} : { label: view.label }) });
    // The class may have been removed; other errors show at the next refresh.
    const found = await askJson(`/api/pictures?${query}`).catch(() => null);
    if (!found) return;
    pictures.push(...found.pictures);
    total = found.total;
  }
  // A later call has begun, and its answer is newer.
  if (call !== view.call) return;
  render(view, pictures);
  view.more.hidden = pictures.length >= total;
  view.more.textContent = `Show ${Math.min(60, total - pictures.length)} more of ${total}`;
  if (view.label === null) byId("doubtful").hidden = byId("to-doubtful").hidden = total === 0;
}

function render(view, pictures) {
  const inputs = [...view.tiles.querySelectorAll("input")];
  const focused = view.tiles.contains(document.activeElement) ? document.activeElement.closest("li").querySelector("input") : null;
  const at = inputs.indexOf(focused);
  view.tiles.replaceChildren(...pictures.map((one) => tile(one, view.label)));
  const after = [...view.tiles.querySelectorAll("input")];
  const next = after.find((input) => input.dataset.key === focused?.dataset.key) ?? after[Math.min(at, after.length - 1)];
  if (after.length) (next ?? after[0]).tabIndex = 0;
  if (focused) (next ?? view.tiles.closest("details")?.querySelector("summary") ?? byId("undo")).focus();
}

function tile(one, label) {
  const item = element("li", "", null, "tile");
  const wrapper = element("label", "", item);
  const box = element("input", "", wrapper);
  box.type = "checkbox";
  box.tabIndex = -1;
  box.checked = chosen.has(one.key);
  box.dataset.key = one.key;
  const picture = element("img", "", wrapper);
  picture.alt = "";
  picture.src = thumbnail(one.thumbnail);
  const name = one.name.split("/").pop();
  element("span", name, wrapper);
  if (!one.learnt) element("span", "not learnt yet", wrapper, "fresh");
  if (one.predicted !== one.label) {
    element("span", `${label === null ? `in ${one.label}, ` : ""}looks like ${one.predicted}`, wrapper, "doubt");
    if (label === null) {
      const button = element("button", `Move to ${one.predicted}`, item);
      button.type = "button";
      button.setAttribute("aria-label", `Move to ${one.predicted}: ${name}`);
      button.onclick = () => send("move", [one.key], { label: one.predicted });
    }
  }
  return item;
}

function choose(box) {
  if (box.checked) chosen.add(box.dataset.key);
  else chosen.delete(box.dataset.key);
  for (const other of document.querySelectorAll(".tile input")) other.checked = chosen.has(other.dataset.key);
  showChosen();
}

function chooseNone() {
  chosen.clear();
  for (const box of document.querySelectorAll(".tile input")) box.checked = false;
  showChosen();
}

function showChosen() {
  byId("chosen").hidden = chosen.size === 0;
  byId("chosen-count").textContent = chosen.size ? `${plural(chosen.size, "picture")} chosen` : "";
}

async function send(what, keys, where = {}) {
  const query = new URLSearchParams([...keys.map((key) => ["key", key]), ...Object.entries(where)]);
  if (document.activeElement?.closest("#chosen")) byId("undo").focus();
  chooseNone();
  await host.change(`/api/shots/${what}?${query}`).catch(() => {});
}

// Each list is one tab stop; arrows move between its pictures.
function onKey(event) {
  const box = event.target;
  if (box.type !== "checkbox") return;
  const all = [...box.closest(".tiles").querySelectorAll("input")];
  const at = all.indexOf(box);
  const columns = all.filter((other) => other.closest("li").offsetTop === all[0].closest("li").offsetTop).length;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: all.length - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    const next = all[to];
    if (!next) return;
    box.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  } else if (event.key === "Delete") {
    send("remove", chosen.size ? [...chosen] : [box.dataset.key]);
  } else if (event.key === "m" && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    if (!chosen.size) {
      box.checked = true;
      choose(box);
    }
    target.select.focus();
  } else if (event.key === "Escape") {
    chooseNone();
  }
}
