// The timeline: what it is stacked by, and as many of its steps as its width can show.
memhouse.ready((data) => {
  // With more steps in sight, each part of the width shows its first, lowest and highest.
  const PARTS = 500;
  // The charts of other memory spaces follow after this long without a move.
  const REST_MS = 200;

  function timeline(name, told) {
    const plot = memhouse.model(name);
    const range = plot.x_range;
    const source = memhouse.model(`${name}_stacks`);
    const full = { ...source.data };
    const { time, [told.total]: total } = full;

    // The rows of the steps to draw between the ends of the range; all of them if they are few.
    function rowsInSight() {
      let low = 0, high = time.length - 1;
      while (low < high && time[low + 1] <= range.start) low += 1;
      while (high > low && time[high - 1] >= range.end) high -= 1;
      const rows = [];
      const isExact = high - low <= 3 * PARTS;
      const width = (range.end - range.start) / PARTS;
      for (let row = low; row <= high;) {
        const part = Math.floor((time[row] - range.start) / width);
        let lowest = row, highest = row, next = row + 1;
        while (!isExact && next <= high && Math.floor((time[next] - range.start) / width) === part) {
          if (total[next] < total[lowest]) lowest = next;
          if (total[next] > total[highest]) highest = next;
          next += 1;
        }
        rows.push(...new Set([row, Math.min(lowest, highest), Math.max(lowest, highest)]));
        row = next;
      }
      if (rows.at(-1) !== high) rows.push(high);
      return rows;
    }

    let waits = false;
    function draw() {
      waits = false;
      const rows = rowsInSight();
      source.data = Object.fromEntries(Object.entries(full).map(([column, values]) =>
        [column, Float64Array.from(rows, (row) => values[row])]));
    }
    range.change.connect(() => {
      if (!waits) requestAnimationFrame(draw);
      waits = true;
    });
    draw();

    const select = document.getElementById(`${name}-by`);
    function show() {
      for (const area of plot.renderers) area.visible = area.tags.includes(`by-${select.value}`);
      for (const legend of document.querySelectorAll(`[data-legend="${name}"]`)) {
        legend.hidden = legend.dataset.by !== select.value;
      }
    }
    select.addEventListener("change", show);
    // A browser that goes back in its history fills in what was chosen.
    show();

    const followers = [...plot.document.all_models].filter((model) => model.tags?.includes(`follows-${name}`));
    let rest = 0;
    range.change.connect(() => {
      clearTimeout(rest);
      rest = setTimeout(() => {
        for (const other of followers) other.x_range.setv({ start: range.start, end: range.end });
      }, REST_MS);
    });
  }

  for (const [name, told] of Object.entries(data)) {
    if (told?.kind === "memory_timeline") timeline(name, told);
  }
});
