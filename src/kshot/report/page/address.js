// What is shown lives in the address, so that a link shows it again; only what differs from the first view is written.
const kept = [];
const view = { at: "" };

// `get` gives the present values as a list of words; `set` takes such a list, and the first view's for what it does not know.
function keep(name, get, set) {
  kept.push({ name, get, set, first: [] });
}

// A set of values of which some are chosen; values may be numbers.
function keepChosen(name, values, chosen) {
  keep(name, () => values.filter((value) => chosen.has(value)).map(String), (words) => {
    chosen.clear();
    for (const value of values) if (words.includes(String(value))) chosen.add(value);
  });
}

function keepOpen(name, selector) {
  const sections = [...document.querySelectorAll(selector)];
  for (const section of sections) section.addEventListener("toggle", remember);
  keep(name, () => sections.filter((one) => one.open).map((one) => one.dataset.key),
    (words) => sections.forEach((one) => { one.open = words.includes(one.dataset.key); }));
}

// Browsers refuse an address that changes at every step of a slider.
function remember() {
  clearTimeout(view.waiting);
  view.waiting = setTimeout(writeAddress, 100);
}

function writeAddress() {
  const said = new URLSearchParams(view.at ? { at: view.at } : {});
  for (const { name, get, first } of kept) {
    const values = get();
    if (values.join("\n") === first.join("\n")) continue;
    for (const value of values.length ? values : [""]) said.append(name, value);
  }
  const hash = said.size ? `#${said}` : "";
  if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname + location.search);
}

function readAddress(hash) {
  const said = new URLSearchParams(hash.slice(1));
  view.at = said.get("at") ?? "";
  for (const { name, set, first } of kept) set(said.has(name) ? said.getAll(name).filter(Boolean) : first);
  showFilters();
  refresh();
  goTo(view.at, "instant");
}

function goTo(id, behavior = "auto") {
  const place = id && document.getElementById(id);
  if (!place) return;
  if (place instanceof HTMLDetailsElement) place.open = true;
  place.scrollIntoView({ behavior });
}

// A plain anchor, as in the list of sections, keeps what is shown; anything else says what to show.
function followAddress(hash) {
  clearTimeout(view.waiting);
  if (!hash || hash.includes("=")) return readAddress(hash);
  view.at = new URLSearchParams(`at=${hash.slice(1)}`).get("at");
  goTo(view.at);
  writeAddress();
}

function startAddress() {
  for (const one of kept) one.first = one.get();
  // A view that waited to be written may have taken the new address's place by now; the event remembers it.
  addEventListener("hashchange", (event) => followAddress(new URL(event.newURL).hash));
  if (location.hash.includes("=")) return readAddress(location.hash);
  refresh();
  if (location.hash) followAddress(location.hash);
}
