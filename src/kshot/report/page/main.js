// Put the parts together.
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
