// The shown table as CSV or LaTeX, a figure as SVG: made here, from what is on the page.
function save(name, type, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// Head and rows of texts, without columns that hold buttons only.
function gridOf(table) {
  const texts = (row) => [...row.cells].map((cell) => cell.textContent.trim());
  const head = texts(table.tHead.rows[0]), columns = head.map((_, index) => index).filter((index) => head[index]);
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  const apart = (row) => row.className || row.parentElement.className;
  return { head: columns.map((index) => head[index]), rows: rows.map((row, place) => ({
    ruled: place > 0 && apart(row) !== apart(rows[place - 1]),
    cells: columns.map((index) => ({ text: texts(row)[index], best: row.cells[index].matches(".best, :has(b)") })),
  })) };
}

const INTERVAL = /^([+−]?[\d.,]+) \[([+−]?[\d.,]+), ([+−]?[\d.,]+)\]$/;
const PLAIN = /^[+-]?[\d.,]+([eE][+-]?\d+)?( ?%)?$/;

// Words that a spreadsheet would take for a formula are marked as words.
function csvText(text) {
  const plain = text === ABSENT ? "" : text.replaceAll("−", "-");
  const safe = /^[=+\-@\t\r]/.test(plain) && !PLAIN.test(plain) ? `'${plain}` : plain;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// An interval takes three columns.
function asCsv(table) {
  const { head, rows } = gridOf(table);
  const wide = head.map((_, index) => rows.some((row) => INTERVAL.test(row.cells[index].text)));
  const spread = (values, split) => values.flatMap((value, index) => (wide[index] ? split(value) : [value])).map(csvText).join(",");
  const parts = (text) => INTERVAL.exec(text)?.slice(1) ?? [text, "", ""];
  const lines = [spread(head, (name) => [name, `${name} low`, `${name} high`]),
    ...rows.map((row) => spread(row.cells.map((cell) => cell.text), parts))];
  return lines.join("\n") + "\n";
}

const latexText = (text) => [...text].map((character) => data.latex[character] ?? character).join("").replaceAll("--", "-{}-");

function asLatex(table, key, title, caption) {
  const { head, rows } = gridOf(table);
  const line = (cells) => `${cells.map(({ text, best }) => (best ? `\\textbf{${latexText(text)}}` : latexText(text))).join(" & ")} \\\\`;
  return ["% \\usepackage{booktabs, graphicx}", "\\begin{table}[t]", "\\centering", `\\caption{\\textbf{${latexText(title)}.} ${latexText(caption)}}`, `\\label{tab:${key}}`,
    "\\smallskip", data.latex_width, `\\begin{tabular}{l${"r".repeat(head.length - 1)}}`, "\\toprule", line(head.map((text) => ({ text }))), "\\midrule",
    ...rows.flatMap((row) => [...(row.ruled ? ["\\midrule"] : []), line(row.cells)]), "\\bottomrule", "\\end{tabular}}", "\\end{table}", ""].join("\n");
}

const INKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "fill-opacity", "paint-order",
  "font-family", "font-size", "font-weight"];

// A copy that needs no style sheet: every element carries the inks that it has on the page, every mark its words.
function alone(picture, x, y) {
  const copy = picture.cloneNode(true);
  const pairs = [picture, ...picture.querySelectorAll("*")].map((one, index) => [one, [copy, ...copy.querySelectorAll("*")][index]]);
  for (const [one, other] of pairs) {
    const style = getComputedStyle(one);
    for (const ink of INKS) other.setAttribute(ink, style.getPropertyValue(ink));
    for (const name of ["class", "tabindex", "role", "aria-label"]) other.removeAttribute(name);
    if (marks.has(one)) other.prepend(svg("title", {}, marks.get(one).words));
  }
  for (const [name, value] of [["x", x], ["y", y]]) copy.setAttribute(name, value);
  return copy;
}

const HEADING = 24, ROW = 20, GAP = 12, COLUMNS = 4;

// All charts of a figure and its legend, on the colour of the page.
function asSvg(figure, legend) {
  const style = getComputedStyle(document.body), ink = { fill: style.color, "font-family": style.fontFamily };
  const charts = [...figure.querySelectorAll("svg.chart")], [wide, tall] = ["width", "height"].map((side) => Number(charts[0].getAttribute(side)));
  const columns = Math.min(COLUMNS, charts.length), top = charts.length > 1 ? HEADING : 0;
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg" }, svg("title", {}, figure.querySelector("figcaption").textContent));
  const paper = svg("rect", { fill: style.backgroundColor });
  root.append(paper);
  charts.forEach((chart, index) => {
    const x = (index % columns) * (wide + GAP), y = Math.floor(index / columns) * (tall + top + GAP);
    if (top) root.append(svg("text", { ...ink, x: x + 6, y: y + 17, "font-size": 14, "font-weight": 600 }, chart.previousElementSibling.textContent));
    root.append(alone(chart, x, y + top));
  });
  const width = columns * (wide + GAP), below = Math.ceil(charts.length / columns) * (tall + top + GAP);
  const across = Math.max(1, Math.floor(width / 220));
  legend.forEach(({ picture, words }, index) => {
    const x = 6 + (index % across) * 220, y = below + Math.floor(index / across) * ROW;
    root.append(alone(picture, x, y), svg("text", { ...ink, x: x + 34, y: y + 11, "font-size": 12 }, words));
  });
  const height = below + Math.ceil(legend.length / across) * ROW + GAP;
  for (const [name, value] of [["width", width], ["height", height]]) { root.setAttribute(name, value); paper.setAttribute(name, value); }
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return new XMLSerializer().serializeToString(root);
}

function legendOf(figure) {
  const items = figure.id === "figure-shots" ? document.querySelectorAll('#legend [aria-pressed="true"]') : figure.querySelectorAll(".legend span");
  return [...items].map((item) => ({ picture: item.querySelector("svg"), words: item.textContent.trim() }));
}

document.addEventListener("click", (event) => {
  const kind = event.target.dataset?.save;
  if (!kind) return;
  const whole = event.target.closest("figure, [data-key]"), key = whole.dataset.key, name = `${data.study}-${key}`.replace(/[^\w.-]+/g, "-");
  if (kind === "svg") return save(`${name}.svg`, "image/svg+xml", asSvg(whole, legendOf(whole)));
  const table = whole.querySelector("table"), [title, caption] = [".title", ".caption"].map((part) => whole.querySelector(part).textContent.trim());
  if (kind === "csv") save(`${name}.csv`, "text/csv", asCsv(table));
  else save(`${name}.tex`, "text/x-tex", asLatex(table, key, title, caption));
});
