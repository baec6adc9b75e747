// Put the parts together.
buildFilters();
buildLegend();
for (const [id, what, choose] of [
  ["legend-tools", "Lines", (wanted) => { shown.clear(); if (wanted) for (const { key } of charted) shown.add(key); renderShots(chosenCells()); remember(); }],
  ["method-tools", "Methods", (wanted) => document.querySelectorAll("#methods details").forEach((one) => { one.open = wanted; })],
  ["table-tools", "Tables", (wanted) => document.querySelectorAll("#tables details").forEach((one) => { one.open = wanted; })],
]) document.getElementById(id).append(allOrNone(what, choose));
addEventListener("beforeprint", () => document.querySelectorAll("#tables details").forEach((one) => { one.open = true; }));
listeners.push(renderVerdict, renderBars, renderShots, renderRatios, renderDatasets);
renderHeadroom();
explorer.cell = allCells.find((cell) => axes.tier.at(cell) === data.focus.tier && axes.profile.at(cell) === data.focus.profile && axes.backbone.at(cell) === data.focus.backbone
  && axes.shots.at(cell) >= 4 && curves("oracle", cell)) ?? 0;
buildPicker();
openExplorer(explorer.cell);
keepFilters();
keepExplorer();
keepDrill();
keepOpen("method", "#methods details");
keepOpen("table", "#tables details");
startAddress();
