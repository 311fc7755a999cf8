// Maps of addresses over time: colours, hover, pins, and small buffers once there is room.
memhouse.ready((data) => {
  // Up to this many small rectangles are drawn one by one; more are drawn merged.
  const MOST_SMALL = 4000;
  // Up to this many have outlines: more lines would hide narrow rectangles.
  const MOST_OUTLINED = 1500;
  const LEGEND = 9;
  const maps = new Map();
  const pointer = { x: 0, y: 0, isDragging: false };
  addEventListener("pointermove", ({ clientX: x, clientY: y, buttons }) => {
    Object.assign(pointer, { x, y, isDragging: buttons > 0 });
  });

  const hover = document.createElement("div");
  hover.className = "map-hover";
  hover.setAttribute("role", "tooltip");
  hover.hidden = true;
  document.body.append(hover);

  // Lines of text beside the pointer. Names from dumps are only ever text.
  function tell(lines) {
    hover.replaceChildren(...lines.filter(Boolean).map((line, place) => {
      const element = document.createElement(place ? "div" : "strong");
      element.textContent = line;
      return element;
    }));
    hover.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = hover;
    const left = pointer.x + 16 + width > innerWidth ? pointer.x - 16 - width : pointer.x + 16;
    const top = Math.min(pointer.y + 16, innerHeight - height - 8);
    hover.style.left = `${Math.max(left, 4)}px`;
    hover.style.top = `${Math.max(top, 4)}px`;
  }

  function addressMap(name, told) {
    const prefix = name.replace("address_map", "map");
    const plot = memhouse.model(name);
    const [exact, merged, lit] = ["rectangles", "merged", "lit"].map((part) => memhouse.model(`${prefix}_${part}`));
    const [large, small, standIns] = ["large", "small", "merged"].map((part) => memhouse.model(`${name}_${part}`));
    const rows = memhouse.columns(told.rows);
    const isSmall = new Uint8Array(rows.size_bytes.length);
    for (const row of small.view.filter.indices) isSmall[row] = 1;
    const select = document.getElementById(`${prefix}-colour`);

    // Colours are numbers, red first; bokeh reads them anew after a change.
    function paint() {
      const way = told.ways[select.value];
      const packed = way.colours.map((colour) => Number(`0x${colour.slice(1)}ff`));
      for (const [source, codes] of [[exact, way.codes], [merged, way.merged_codes]]) {
        memhouse.numbers(codes).forEach((code, row) => { source.data.colour[row] = packed[code]; });
        source.change.emit();
      }
      const entries = way.names.map((text, place) => [text, way.colours[place], way.peak_bytes[place]]);
      const shown = entries.length > LEGEND + 1 ? entries.slice(0, LEGEND - 1) : entries;
      const rest = entries.slice(shown.length);
      if (rest.length) {
        shown.push([`${rest.length} more`, rest[0][1], rest.reduce((sum, entry) => sum + entry[2], 0)]);
      }
      const title = document.createElement("li");
      title.className = "note";
      title.textContent = "At the peak:";
      document.getElementById(`${name}-legend`).replaceChildren(title, ...shown.map(([text, colour, bytes]) => {
        const item = document.createElement("li"), swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = colour;
        item.append(swatch, `${text} ${memhouse.formatBytes(bytes)}`);
        return item;
      }));
    }

    // Each small rectangle is drawn if few are in sight, and outlined if few are there.
    let waits = false;
    function chooseDetail() {
      waits = false;
      const { left, right, bottom, top } = exact.data;
      const { x_range: x, y_range: y } = plot;
      const inSight = [0, 0];
      let seen = 0;
      const visible = (y.end - y.start) * .01;
      for (let row = 0; row < isSmall.length; row += 1) {
        if (!(right[row] > x.start && left[row] < x.end && top[row] > y.start && bottom[row] < y.end)) continue;
        inSight[isSmall[row]] += 1;
        if (isSmall[row] && top[row] - bottom[row] >= visible) seen += 1;
      }
      const isExact = inSight[1] <= MOST_SMALL;
      small.visible = isExact;
      standIns.visible = !isExact;
      const areFew = inSight[0] + inSight[1] <= MOST_OUTLINED;
      large.glyph.line_color = areFew ? "black" : null;
      // A line around what is lower than itself would be all that is seen of it.
      small.glyph.line_color = areFew && seen > inSight[1] / 2 ? "black" : null;
    }
    function detailSoon() {
      if (waits) return;
      waits = true;
      requestAnimationFrame(chooseDetail);
    }

    // The row of what lies uppermost at a place, -1 if nothing does.
    function rowAt(source, x, y, isDrawn) {
      const { left, right, bottom, top } = source.data;
      for (let row = left.length - 1; row >= 0; row -= 1) {
        if (left[row] <= x && x < right[row] && bottom[row] <= y && y < top[row] && isDrawn(row)) return row;
      }
      return -1;
    }
    const mergedAt = (x, y) => (standIns.visible ? rowAt(merged, x, y, () => true) : -1);
    const bufferAt = (x, y) => rowAt(exact, x, y, (row) => small.visible || !isSmall[row]);

    function describe(row) {
      const used = rows.last_use_time[row];
      const padding = rows.padding_bytes[row];
      return [
        rows.value.at(row) || "an allocation without a known value",
        rows.shape.at(row), rows.op_name.at(row), rows.source.at(row),
        `${memhouse.formatBytes(rows.size_bytes[row])}${padding > 0 ? `, of it padding ${memhouse.formatBytes(padding)}` : ""}`,
        `lives from ${rows.start_time[row]} to ${rows.end_time[row]}${used >= 0 ? `, last read at ${used}` : ""}`,
      ];
    }

    function onMove(event) {
      const together = mergedAt(event.x, event.y);
      const row = together < 0 ? bufferAt(event.x, event.y) : -1;
      if (together >= 0) {
        const count = told.merged.count[together];
        tell([
          count === 1 ? "1 small value" : `${count.toLocaleString("en")} small values`,
          `${memhouse.formatBytes(told.merged.size_bytes[together])} in all`,
          "click to zoom in",
        ]);
      } else if (row >= 0) tell(describe(row));
      else hover.hidden = true;
    }

    function boxOf(source, row) {
      const { left, right, bottom, top } = source.data;
      return { left: left[row], right: right[row], bottom: bottom[row], top: top[row] };
    }

    function onTap(event) {
      const together = mergedAt(event.x, event.y);
      if (together >= 0) { zoomTo(boxOf(merged, together)); return; }
      const row = bufferAt(event.x, event.y);
      if (row < 0 || exact.data.value_id[row] < 0) return;
      const id = exact.data.value_id[row];
      light([id]);
      memhouse.pin?.(id);
    }

    // Show a box of times and addresses, with some of what is around it.
    function zoomTo({ left, right, bottom, top }) {
      const wide = Math.max((right - left) * .25, 4), high = Math.max((top - bottom) * .5, 1024);
      const { x_range: x, y_range: y } = plot;
      x.setv({ start: Math.max(left - wide, 0), end: Math.min(right + wide, told.schedule_length) });
      y.setv({ start: Math.max(bottom - high, 0), end: Math.min(top + high, told.extent_bytes) });
    }

    // Boxes of one extent that touch along an axis become one.
    function joined(boxes, [from, to], [start, end]) {
      boxes.sort((a, b) => a[from] - b[from] || a[to] - b[to] || a[start] - b[start]);
      const found = [];
      for (const box of boxes) {
        const last = found.at(-1);
        if (last?.[from] === box[from] && last[to] === box[to] && box[start] <= last[end]) last[end] = Math.max(last[end], box[end]);
        else found.push(box);
      }
      return found;
    }

    // Outline the rectangles of values. Lines between many that touch would hide them.
    function light(valueIds) {
      const wanted = new Set(valueIds), times = ["left", "right"], addresses = ["bottom", "top"];
      const found = [];
      exact.data.value_id.forEach((id, row) => { if (wanted.has(id)) found.push(boxOf(exact, row)); });
      const outlined = joined(joined(found, addresses, times), times, addresses);
      const column = (side) => outlined.map((box) => box[side]);
      lit.data = { left: column("left"), right: column("right"), bottom: column("bottom"), top: column("top") };
    }

    select.addEventListener("change", paint);
    paint();
    for (const range of [plot.x_range, plot.y_range]) range.change.connect(detailSoon);
    chooseDetail();
    maps.set(name, { onMove, onTap, zoomTo, light });
  }

  for (const [name, told] of Object.entries(data)) {
    if (told?.kind === "address_map") addressMap(name, told);
  }

  Object.assign(memhouse, {
    // What the map's figure calls with each event of the pointer.
    onMap(event) {
      const map = maps.get(event.origin.name);
      if (!map) return;
      if (event.event_name === "tap") map.onTap(event);
      else if (event.event_name === "mousemove" && !pointer.isDragging) map.onMove(event);
      else hover.hidden = true;
    },
    zoomTo(box, name = "address_map") { maps.get(name)?.zoomTo(box); },
    light(valueIds, name = "address_map") { maps.get(name)?.light(valueIds); },
  });
});
