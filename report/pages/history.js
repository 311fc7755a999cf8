// Of a history: the filter by the series' names, over the charts and the rows below them.
memhouse.ready(() => {
  const input = document.getElementById("series-filter");
  if (!input) return;
  const told = document.getElementById("series-shown");
  const named = [
    ...[...document.querySelectorAll(".cards figure")].map((card) => [card, card.querySelector("h3")]),
    ...[...document.querySelectorAll("#other-series tbody tr")].map((row) => [row, row.cells[0]]),
  ].map(([element, name]) => [element, name.textContent.toLowerCase()]);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const [element, name] of named) {
      element.hidden = !name.includes(wanted);
      shown += !element.hidden;
    }
    told.textContent = wanted ? `${shown} of ${named.length}` : "";
  });
});
