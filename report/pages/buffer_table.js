// The table of all buffers: `table#buffers`, with a filter and a sorting button for each column.
// It draws a page of rows, and more on request, because a browser is slow with tens of thousands.
// It is a plain table because screen readers, print and dark paper work with one.
memhouse.ready((data) => {
  const table = document.getElementById("buffers");
  const told = memhouse.values;
  if (!table || !told || !data.buffers) return;
  const buffers = memhouse.columns(data.buffers.columns);
  const peakTime = data.buffers.peak_time;
  const { values, instructions } = told;
  const PAGE = 50;
  const count = buffers.size_bytes.length;
  const numberText = (number) => number.toLocaleString("en-US");
  // Each buffer's value, and the instruction that says whose it is.
  const valueRows = Array.from(buffers.value_id, (id) => (id < 0 ? -1 : told.rowOf(id)));
  const heldRows = valueRows.map((row) => (row < 0 ? -1 : told.held(row)));
  const isLive = Uint8Array.from(valueRows, (_, at) => peakTime !== null
    && buffers.start_time[at] <= peakTime && peakTime <= buffers.end_time[at]);
  const peak = buffers.peak_counted_bytes.reduce((sum, counted) => sum + counted, 0);

  // A column of texts: which of few texts each buffer has. What may be a guess is marked.
  function texts(title, column, rows, { short = (text) => text, mayBeGuess = false, ...look } = {}) {
    const shown = column.texts.map(short);
    const which = Int32Array.from(rows, (row) => (row < 0 ? -1 : column.rows[row]));
    return { ...look, title, shown, which, text(at) {
      const text = shown[which[at]] ?? "";
      return text && mayBeGuess && valueRows[at] >= 0 && told.isGuess(valueRows[at]) ? `${text}?` : text;
    } };
  }
  function numbers(title, numbers, text) {
    return { title, numbers, text };
  }
  function peakText(at) {
    if (!isLive[at] || !peak) return "";
    const counted = buffers.peak_counted_bytes[at];
    return counted ? `${(100 * counted / peak).toFixed(1)}%` : "shared";
  }
  const all = Array.from(valueRows, (_, at) => at);
  const names = valueRows.map((row, at) => (row < 0 ? `allocation ${buffers.allocation_index[at]}` : told.name(row)));
  const line = { class: "line" }, owner = { mayBeGuess: true, ...line };
  const columns = [
    numbers("size", buffers.size_bytes, (at) => told.size(buffers.size_bytes[at])),
    numbers("of peak", buffers.peak_counted_bytes, peakText),
    texts("shape", values.shape, valueRows, { short: told.shortShape, ...line }),
    texts("source", instructions.source, heldRows, { short: told.shortSource, ...owner }),
    texts("op name", instructions.op_name, heldRows, { class: "wide" }),
    texts("pass", values.pass, valueRows, owner),
    texts("category", buffers.category, all, line),
    texts("scope", instructions.scope, heldRows, { mayBeGuess: true }),
    numbers("padding", buffers.padding_bytes, (at) => (buffers.padding_bytes[at] <= 0 ? ""
      : told.size(buffers.padding_bytes[at]))),
    numbers("life", buffers.start_time, (at) => `${buffers.start_time[at]} – ${buffers.end_time[at]}`),
    { title: "value", class: "name", names, text: (at) => names[at] },
  ];

  let sorted = { column: 0, isDown: true, order: [] };
  let shown = [], drawn = 0, lowerNames = null;
  const filter = document.getElementById("buffers-filter");
  const atPeak = document.getElementById("buffers-at-peak");
  const countText = document.getElementById("buffers-count");
  const more = document.getElementById("buffers-more");
  const body = table.tBodies[0];

  // A number for each buffer that sorts as the column does.
  function keys(column) {
    if (column.numbers) return column.numbers;
    const listed = column.names ?? column.shown;
    const collator = new Intl.Collator("en", { numeric: true });
    const ranks = new Int32Array(listed.length);
    Array.from(listed, (_, at) => at).sort((a, b) => collator.compare(listed[a], listed[b]))
      .forEach((at, rank) => { ranks[at] = rank + 1; });
    return column.names ? ranks : column.which.map((which) => (which < 0 ? 0 : ranks[which]));
  }

  function sort(number, isDown) {
    const key = keys(columns[number]), size = buffers.size_bytes, sign = isDown ? -1 : 1;
    sorted = { column: number, isDown,
      order: all.slice().sort((a, b) => sign * (key[a] - key[b]) || size[b] - size[a] || a - b) };
    [...table.tHead.rows[0].cells].forEach((header, at) => {
      if (at === number) header.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    choose();
  }

  // The buffers to show: every word must be in one of the columns of texts.
  function choose() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    lowerNames ??= names.map((name) => name.toLowerCase());
    const tests = words.map((word) => columns.filter((column) => column.which).map((column) => ({
      which: column.which, has: column.shown.map((text) => text.toLowerCase().includes(word)),
    })));
    const fits = (at) => tests.every((test, place) => lowerNames[at].includes(words[place])
      || test.some(({ which, has }) => has[which[at]]));
    shown = sorted.order.filter((at) => (!atPeak.checked || isLive[at]) && fits(at));
    let sum = 0;
    for (const at of shown) sum += atPeak.checked ? buffers.peak_counted_bytes[at] : buffers.size_bytes[at];
    const shared = atPeak.checked ? "of the peak" : "if each is counted in full, whenever it lives and whatever it shares";
    countText.textContent = `${numberText(shown.length)} of ${numberText(count)} buffers, ${told.size(sum)} ${shared}`;
    body.replaceChildren();
    drawn = 0;
    drawMore();
  }

  function drawMore() {
    for (const at of shown.slice(drawn, drawn + PAGE)) {
      const row = body.insertRow();
      row.dataset.buffer = at;
      row.tabIndex = row.rowIndex === 1 ? 0 : -1;
      for (const column of columns) {
        const cell = row.insertCell();
        cell.append(memhouse.breakable(column.text(at)));
        cell.className = column.numbers ? "number" : column.class ?? "";
      }
      row.dataset.value = buffers.value_id[at];
    }
    drawn = Math.min(drawn + PAGE, shown.length);
    more.hidden = drawn === shown.length;
    more.textContent = `Show ${Math.min(PAGE, shown.length - drawn)} more of ${numberText(shown.length - drawn)}`;
    mark(memhouse.pinned);
  }

  // Marks the row of the pinned value, if it is drawn.
  function mark(id) {
    for (const row of body.querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
    if (id !== null) body.querySelector(`[data-value="${id}"]`)?.setAttribute("aria-current", "true");
  }

  function open(row) {
    const at = Number(row.dataset.buffer);
    if (valueRows[at] < 0) return;
    told.zoom(valueRows[at]);
    memhouse.pin(buffers.value_id[at], { opener: row });
  }

  function move(row, to) {
    if (!to) return;
    row.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  columns.forEach((column, number) => {
    const header = document.createElement("th"), button = document.createElement("button");
    header.scope = "col";
    if (column.numbers) header.className = "number";
    button.type = "button";
    button.textContent = column.title;
    button.addEventListener("click", () => {
      sort(number, sorted.column === number ? !sorted.isDown : Boolean(column.numbers));
    });
    header.append(button);
    table.tHead.rows[0].append(header);
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    // A reader who selects text to copy does not mean to open the row.
    if (row && !String(getSelection())) open(row);
  });
  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    if (event.key === "Enter") open(row);
    else if (event.key === "ArrowDown") move(row, row.nextElementSibling);
    else if (event.key === "ArrowUp") move(row, row.previousElementSibling);
    else return;
    event.preventDefault();
  });
  filter.addEventListener("input", choose);
  atPeak.addEventListener("change", choose);
  more.addEventListener("click", drawMore);
  memhouse.onPin?.(mark);
  atPeak.checked = isLive.includes(1);
  atPeak.disabled = !atPeak.checked;
  sort(0, true);
});
