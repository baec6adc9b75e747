// Put the parts together.
const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
function showTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : system.matches;
  theme.setAttribute("aria-pressed", dark);
  theme.textContent = dark ? "Light" : "Dark";
  theme.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  return dark;
}
theme.addEventListener("click", () => { document.documentElement.dataset.theme = showTheme() ? "light" : "dark"; showTheme(); });
system.addEventListener("change", showTheme);
showTheme();

buildFilters();
renderLegend();
listeners.push(renderVerdict, renderBars, renderShots, renderRatios, renderDatasets);
refresh();
renderHeadroom();
const start = allCells.find((cell) => axes.tier.at(cell) === data.focus.tier && axes.backbone.at(cell) === data.focus.backbone
  && axes.shots.at(cell) >= 4 && curves("oracle", cell)) ?? 0;
explorer.cell = start;
buildPicker();
openExplorer(start);
