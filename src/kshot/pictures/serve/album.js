// The head's own pictures, class by class: choose, move, remove.
import { classChoice } from "./choice.js";
import { askJson, byId, element, plural, thumbnail } from "./server.js";

// So many pictures are shown at once; of more, each class opens when it is asked for.
const MOST_OPEN = 120;
const chosen = new Set(), shown = new Map();
let host, target;

export function listenForChoices(given) {
  host = given;
  target = classChoice(byId("move-to"), "Move to");
  target.select.id = "target";
  byId("chosen").onsubmit = (event) => {
    event.preventDefault();
    send("move", [...chosen], target.asked());
  };
  byId("remove").onclick = () => send("remove", [...chosen]);
  byId("none").onclick = chooseNone;
  for (const place of [byId("class-list"), byId("doubtful-list")]) {
    place.addEventListener("change", (event) => choose(event.target));
    place.addEventListener("keydown", onKey);
  }
  list(byId("doubtful-list"), null);
}

// Adds the classes that are new, takes away those that are gone, and brings what is open up to date.
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
  shown.set(place, { label, tiles, more, pages: 1, turn: 0 });
}

async function fill(place) {
  const own = shown.get(place);
  if (!own) return;
  if (own.label !== null && !place.open) return;
  const turn = (own.turn += 1), pictures = [];
  let total = 0;
  for (let page = 0; page < own.pages; page += 1) {
    const asked = new URLSearchParams({ start: pictures.length, ...(own.label === null ? {} : { label: own.label }) });
    // A class may be gone by now; what else is wrong, the next look at the head tells.
    const found = await askJson(`/api/pictures?${asked}`).catch(() => null);
    if (!found) return;
    pictures.push(...found.pictures);
    total = found.total;
  }
  // A later look has begun: what it finds is newer.
  if (turn !== own.turn) return;
  render(own, pictures);
  own.more.hidden = pictures.length >= total;
  own.more.textContent = `Show ${Math.min(60, total - pictures.length)} more of ${total}`;
  if (own.label === null) byId("doubtful").hidden = byId("to-doubtful").hidden = total === 0;
}

function render(own, pictures) {
  const inputs = [...own.tiles.querySelectorAll("input")];
  const focused = own.tiles.contains(document.activeElement) ? document.activeElement.closest("li").querySelector("input") : null;
  const at = inputs.indexOf(focused);
  own.tiles.replaceChildren(...pictures.map((one) => tile(one, own.label)));
  const after = [...own.tiles.querySelectorAll("input")];
  const next = after.find((input) => input.dataset.key === focused?.dataset.key) ?? after[Math.min(at, after.length - 1)];
  if (after.length) (next ?? after[0]).tabIndex = 0;
  if (focused) (next ?? own.tiles.closest("details")?.querySelector("summary") ?? byId("undo")).focus();
}

function tile(one, label) {
  const made = element("li", "", null, "tile");
  const around = element("label", "", made);
  const box = element("input", "", around);
  box.type = "checkbox";
  box.tabIndex = -1;
  box.checked = chosen.has(one.key);
  box.dataset.key = one.key;
  const picture = element("img", "", around);
  picture.alt = "";
  picture.src = thumbnail(one.thumbnail);
  const name = one.name.split("/").pop();
  element("span", name, around);
  if (!one.learnt) element("span", "not learnt yet", around, "fresh");
  if (one.says !== one.label) {
    element("span", `${label === null ? `in ${one.label}, ` : ""}looks like ${one.says}`, around, "doubt");
    if (label === null) {
      const button = element("button", `Move to ${one.says}`, made);
      button.type = "button";
      button.setAttribute("aria-label", `Move to ${one.says}: ${name}`);
      button.onclick = () => send("move", [one.key], { label: one.says });
    }
  }
  return made;
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
  const asked = new URLSearchParams([...keys.map((key) => ["key", key]), ...Object.entries(where)]);
  if (document.activeElement?.closest("#chosen")) byId("undo").focus();
  chooseNone();
  await host.change(`/api/shots/${what}?${asked}`).catch(() => {});
}

// One tab stop for each list; inside, arrows go from picture to picture.
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
