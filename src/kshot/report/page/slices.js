// Every choice of cells is finished text of Python: the page shows one and hides the others. The address holds the choice.
const parts = [...document.querySelectorAll("[data-slice]")];
const chooser = document.getElementById("slice");
const folds = [...document.querySelectorAll("details[data-key]")];
const view = {};

function showSlice(key) {
  view.slice = [...chooser.options].some((option) => option.value === key) ? key : "all";
  chooser.value = view.slice;
  for (const part of parts) part.hidden = part.dataset.slice !== view.slice;
  hintScrolling();
}

// Of what is shown, only what differs from the first view is written.
function remember() {
  const open = folds.filter((fold) => fold.open).map((fold) => fold.dataset.key);
  const words = new URLSearchParams();
  if (view.slice !== "all") words.set("cells", view.slice);
  if (open.length) words.set("open", open.join(" "));
  if (view.cell) words.set("cell", view.cell);
  history.replaceState(null, "", words.size ? `#${words}` : location.pathname + location.search);
}

function readAddress() {
  if (location.hash && !location.hash.includes("=")) return openSection(location.hash.slice(1));
  const words = new URLSearchParams(location.hash.slice(1));
  const open = (words.get("open") ?? "").split(" ");
  for (const fold of folds) fold.open = open.includes(fold.dataset.key);
  showSlice(words.get("cells") ?? "all");
  showCell(words.get("cell"));
}

// A link to a section opens its fold, if it is all that the section has.
function openSection(id) {
  const section = document.getElementById(id), fold = section?.querySelector(":scope > details:only-of-type");
  if (fold) fold.open = true;
  section?.scrollIntoView();
}

// A table that is wider than its place says so.
function hintScrolling() {
  for (const place of document.querySelectorAll(".scroll")) place.classList.toggle("more", place.scrollWidth > place.clientWidth + 1);
}

const valueOf = (row, column) => {
  const text = row.cells[column].textContent.replaceAll("−", "-");
  return Number.isNaN(parseFloat(text)) ? text : parseFloat(text);
};

// A click on a heading sorts the rows above the line; what has no number comes last.
function sortBy(table, column, heading) {
  const down = heading.getAttribute("aria-sort") !== "descending";
  const rows = [...table.tBodies[0].rows].filter((row) => !row.classList.contains("reference"));
  const numeric = rows.some((row) => typeof valueOf(row, column) === "number");
  const key = (row) => {
    const value = valueOf(row, column);
    if (!numeric) return value;
    return typeof value === "number" ? value : down ? -Infinity : Infinity;
  };
  rows.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (down ? -1 : 1));
  table.tBodies[0].prepend(...rows);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.append(button);
  });
}

document.querySelectorAll(".board table").forEach(makeSortable);
document.querySelectorAll("form").forEach((form) => form.addEventListener("submit", (event) => event.preventDefault()));
chooser.addEventListener("change", () => { showSlice(chooser.value); remember(); });
document.querySelectorAll("[data-show]").forEach((button) => button.addEventListener("click", () => { showSlice(button.dataset.show); remember(); chooser.focus(); }));
for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", () => { hintScrolling(); if (fold.dataset.key) remember(); });
addEventListener("resize", hintScrolling);
addEventListener("hashchange", readAddress);
