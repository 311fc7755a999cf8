// What every page of a report has: its content unpacked, its charts drawn in the paper's colours,
// its tables sorted by a click. A chart's own script waits with `memhouse.ready(function)`.
const memhouse = (() => {
  const waiting = [];
  // A sheet of A4 between its margins, in CSS pixels; one of US letter is wider.
  const PAPER_WIDTH = 700;
  const NO_BOKEH = "The chart needs bokeh's script, which could not be loaded. Set BOKEH_RESOURCES=inline "
    + "before Python starts: then the script is saved with every chart.";
  const page = { data: {}, isReady: false };

  // Compressed text of the page as it was. Nothing is asked of a network.
  async function unpacked(id) {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  // Charts are drawn on a canvas, which does not know the page's colours.
  function paint() {
    if (!window.Bokeh) return;
    const ink = colour("ink"), muted = colour("muted"), grid = colour("grid"), line = colour("line");
    for (const doc of Bokeh.documents) {
      for (const model of doc.all_models) {
        const has = (name) => name in model.attributes;
        const tags = model.tags ?? [];
        const changes = {};
        if (has("major_label_text_color")) {
          Object.assign(changes, {
            axis_label_text_color: ink, major_label_text_color: muted,
            axis_line_color: line, major_tick_line_color: line,
          });
        } else if (has("grid_line_color")) {
          changes.grid_line_color = grid;
        } else if (tags.includes("ink") || tags.includes("muted")) {
          const wanted = tags.includes("ink") ? ink : muted;
          for (const name of ["text_color", "line_color"]) if (has(name)) changes[name] = wanted;
          // A text on a chart's colours is read on paper of its own.
          if (has("text") && has("background_fill_color")) changes.background_fill_color = colour("paper");
        } else if (tags.includes("faint")) {
          changes.line_color = grid;
        }
        model.setv(changes);
      }
    }
  }

  // Print waits for no frame: the charts take its colours and its width at once.
  function onPaper(isPaper) {
    document.documentElement.classList.toggle("on-paper", isPaper);
    paint();
    for (const chart of document.querySelectorAll(".chart")) {
      chart.style.zoom = isPaper ? Math.min(1, PAPER_WIDTH / Math.max(chart.clientWidth, 1)) : "";
    }
    for (const view of views()) {
      if (view.model.type === "Toolbar") view.el.style.visibility = isPaper ? "hidden" : "";
      if (view.model.type === "Figure") view.paint();
    }
  }

  // The views of all models that are drawn, parents first.
  function* views(parents = Bokeh.index.roots) {
    for (const view of parents) {
      yield view;
      yield* views(view.children());
    }
  }

  function formatBytes(size) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let value = Math.abs(size), unit = 0;
    // Shown with two digits, what is just below 1024 would read 1024.00.
    while (value >= 1024 - .005 && unit < units.length - 1) { value /= 1024; unit += 1; }
    return `${size < 0 ? "-" : ""}${unit ? value.toFixed(2) : value.toFixed(0)} ${units[unit]}`;
  }

  // Bokeh's hover boxes have labels of a pale blue that light paper swallows, out of CSS's reach.
  function colourHovers() {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(".bk-tooltip-row-label { color: var(--muted); }");
    new MutationObserver((changes) => {
      for (const node of changes.flatMap((change) => [...change.addedNodes])) {
        const sheets = node.classList?.contains("bk-Tooltip") && node.shadowRoot?.adoptedStyleSheets;
        if (sheets && !sheets.includes(sheet)) sheets.push(sheet);
      }
    }).observe(document.body, { childList: true, subtree: true });
  }

  // A long path as text that breaks after a slash.
  function breakable(text) {
    const made = document.createDocumentFragment();
    const parts = text.length < 28 ? [text] : text.split(/(?<=\/)/);
    parts.forEach((part, place) => made.append(...(place ? [document.createElement("wbr")] : []), part));
    return made;
  }

  function sortTable(table, button) {
    const header = button.closest("th");
    const column = header.cellIndex;
    const down = header.getAttribute("aria-sort") !== "descending";
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    const key = (row) => {
      const cell = row.cells[column];
      return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
    };
    const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => sign * (typeof a === "number" ? a - b : a.localeCompare(b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  // A notebook's frame is as high as what it shows.
  function fitFrame() {
    const frame = window.frameElement, root = document.documentElement;
    if (!frame || !root.classList.contains("cell")) return;
    new ResizeObserver(() => { frame.style.height = `${Math.ceil(root.getBoundingClientRect().height)}px`; })
      .observe(root);
  }

  async function start() {
    fitFrame();
    for (const table of document.querySelectorAll("table.sortable")) {
      table.tHead.addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button) sortTable(table, button);
      });
    }
    const content = document.getElementById("packed-content")
      ? JSON.parse(await unpacked("packed-content")) : { charts: null, data: {} };
    page.data = content.data;
    if (content.charts) {
      const packedBokeh = document.getElementById("packed-bokeh");
      if (!window.Bokeh && !packedBokeh) {
        for (const chart of document.querySelectorAll(".chart")) chart.textContent = NO_BOKEH;
        document.documentElement.dataset.ready = "no";
        return;
      }
      if (!window.Bokeh) {
        const script = document.createElement("script");
        script.textContent = await unpacked("packed-bokeh");
        document.head.append(script);
      }
      const roots = {};
      content.charts.roots.forEach((id, place) => { roots[id] = document.getElementById(`chart-${place}`); });
      const item = { docid: "page", roots, root_ids: content.charts.roots };
      await Bokeh.embed.embed_items({ page: content.charts.document }, [item]);
      paint();
      colourHovers();
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
      addEventListener("beforeprint", () => onPaper(true));
      addEventListener("afterprint", () => onPaper(false));
    }
    page.isReady = true;
    for (const act of waiting) act(page.data);
    document.documentElement.dataset.ready = "yes";
  }

  return Object.assign(page, {
    start, colour, formatBytes, breakable, paint,
    // Call `act(data)` once the charts are there.
    ready(act) { if (page.isReady) act(page.data); else waiting.push(act); },
    // A bokeh model by its name.
    model(name) { return Bokeh.documents[0]?.get_model_by_name(name) ?? null; },
  });
})();
