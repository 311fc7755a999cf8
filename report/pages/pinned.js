// The panel of the value that is pinned. `memhouse.pin(valueId)` fills it, Escape empties it, and
// the page's address keeps it (`#value=12`), so that a link can point at a value. Names from dumps
// become text, never HTML.
memhouse.ready(() => {
  const panel = document.getElementById("pinned");
  const told = memhouse.values;
  if (!panel || !told) return;
  const { values, instructions, allocations } = told;
  const listeners = [];
  const RULES = {
    argument: "it is this argument, or what a collective gathers of it",
    own: "the instruction computes it itself",
    moved: "it is moved from there: by a copy, a slice or a change of layout",
    loop: "the body of a loop, a branch or a scan computes it",
    fused: "the instruction inside the fusion that computes this result",
    becomes: "the memory is filled with one number at first, and this is stored into it later",
    read: "the memory is filled with one number and stays so, and this reads it",
    operand: "a guess: the largest operand of a computation without a name",
    weak: "a guess: only a loop or another wrapper has a name",
  };
  const LISTED = 20;
  let openedFrom = null;

  function element(tag, { on, ...attributes } = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    for (const child of children) if (child || child === 0) made.append(child);
    if (on) made.addEventListener("click", on);
    return made;
  }

  const number = (value) => value.toLocaleString("en-US");
  const bytes = (value) => `${told.size(value)} (${number(value)} bytes)`;

  function facts(pairs) {
    const list = element("dl", { class: "told" });
    for (const [title, text] of pairs) {
      if (text) list.append(element("div", {}, element("dt", {}, title), element("dd", {}, memhouse.breakable(text))));
    }
    return list;
  }

  function block(name, title, ...children) {
    return element("div", { "data-told": name }, element("h4", {}, title), ...children);
  }

  function list(tag, items, more) {
    const made = element(tag, {}, ...items.map((item) => element("li", {}, ...item)));
    if (more > 0) made.append(element("li", { class: "note" }, `and ${number(more)} more`));
    return made;
  }

  // An instruction: its name, what it is, when it runs, its op_name and its line.
  function instructionTold(row) {
    const time = instructions.schedule_time[row];
    const kind = [instructions.opcode.at(row), time >= 0 && `at ${number(time)}`].filter(Boolean);
    const lines = [element("div", {}, element("code", {}, told.instructionName(row)), ` ${kind.join(", ")}`)];
    for (const text of [instructions.op_name.at(row), instructions.source.at(row)]) {
      if (text) lines.push(element("div", { class: "note" }, memhouse.breakable(text)));
    }
    return lines;
  }

  function life(row) {
    const start = values.start_time[row], end = values.end_time[row];
    if (start < 0) return "not known";
    const instants = `${number(start)} – ${number(end)} of 0 – ${number(told.scheduleLength)}`;
    const place = told.place(row);
    const isThroughout = place && place.left === 0 && place.right > told.scheduleLength;
    const isLonger = isThroughout && (start > 0 || end < told.scheduleLength);
    return instants + (isLonger ? "; its allocation is there throughout" : "");
  }

  function where(row) {
    const allocation = told.allocationRow(row);
    if (allocation < 0) return `${told.space}, in no allocation`;
    const holds = allocations.holds.at(allocation), argument = allocations.parameter_number[allocation];
    const what = argument < 0 ? holds : holds.replace("argument", `argument ${argument}`);
    const offset = values.offset_bytes[row];
    return `${told.space}, allocation ${values.allocation_index[row]} (${what}, ${told.size(allocations.size_bytes[allocation])})`
      // What is estimated has a place in a list, and no address.
      + (offset < 0 || told.isEstimated ? "" : `, from byte ${number(offset)}`);
  }

  function aliasItems(rows) {
    return rows.slice(0, LISTED).map((row) => [
      element("button", { type: "button", class: "value", on: () => pin(values.value_id[row]) }, told.name(row)),
      element("span", { class: "note" }, ` ${told.shortShape(values.shape.at(row))}`
        + (values.start_time[row] < 0 ? "" : `, ${number(values.start_time[row])} – ${number(values.end_time[row])}`)),
    ]);
  }

  function details(row) {
    const made = values.made_by[row], origin = values.origin[row], held = told.held(row);
    const size = values.size_bytes[row], logical = values.logical_bytes[row];
    const padding = logical < 0 ? -1 : size - logical;
    const rule = values.origin_rule.at(row), guess = told.isGuess(row) ? "?" : "";
    const marked = (text) => (text ? text + guess : "");
    const lastUse = values.last_use_time[row], idle = values.peak_idle_time[row];

    const about = facts([
      ["Size", bytes(size)],
      ["Logical size", logical < 0 ? "not known" : bytes(logical)],
      ["Padding", padding < 0 ? "not known" : padding === 0 ? "none"
        : `${bytes(padding)}, ${(100 * padding / size).toFixed(1)} % of the size`],
      ["Shape and layout", values.shape.at(row)],
      ["Where", where(row)],
      ["Life", life(row)],
      ["Last read", lastUse < 0 ? "nothing computes from it or copies it" : `at ${number(lastUse)}`],
      ["Idle across the peak", idle > 0 && `${number(idle)} positions without a read or a write`],
      ["Op name", instructions.op_name.at(held)],
      ["Pass", marked(values.pass.at(row))],
      ["Role", marked(values.role.at(row)) + (values.is_saved_for_backward[row] > 0 ? ", saved for the backward pass" : "")],
      ["Scope", marked(instructions.scope.at(held))],
    ]);

    const ofStack = instructions.frame[held] < 0 ? made : held;
    const stack = told.stack(ofStack);
    const blocks = element("div", { class: "blocks" });
    blocks.append(block("stack", "Python stack, innermost first", stack.length
      ? list("ol", stack.map(({ place, name }) => [element("code", {}, memhouse.breakable(place)), name && ` ${name}`]))
      : element("p", { class: "note" }, "The dump tells no Python frame of it.")));

    const maker = block("made", "Made by", ...instructionTold(made));
    if (origin >= 0 && origin !== made) {
      maker.append(element("h4", {}, `Holds the result of${guess && ", as a guess"}`), ...instructionTold(origin));
    }
    if (rule && rule !== "own") maker.append(element("p", { class: "note" }, `${rule}: ${RULES[rule] ?? ""}`));
    if (!rule) maker.append(element("p", { class: "note" }, "What it holds is not known."));
    blocks.append(maker);

    const readers = [...told.readers(row)], all = values.readers_count[row];
    blocks.append(block("readers", all === 1 ? "Read by 1 instruction" : `Read by ${number(all)} instructions`,
      readers.length ? list("ol", readers.map(instructionTold), all - readers.length)
        : element("p", { class: "note" }, "No instruction reads it.")));

    const aliases = told.aliases(row), sharing = told.sharing(row);
    const shared = block("aliases", "Its aliases: they must have the same buffer", aliases.length
      ? list("ul", aliasItems(aliases), aliases.length - LISTED)
      : element("p", { class: "note" }, "It has its buffer for itself."));
    if (sharing.length) {
      shared.append(element("h4", {}, "At the same addresses at other times"),
        list("ul", aliasItems(sharing), sharing.length - LISTED));
    }
    blocks.append(shared);
    return [about, blocks];
  }

  function show(row) {
    const header = element("header", {},
      element("h3", { "aria-live": "polite" }, element("span", { class: "note" }, "Pinned: "), told.name(row)));
    const controls = element("div", { class: "controls" });
    if (memhouse.zoomTo && told.place(row)) {
      controls.append(element("button", { type: "button", on: () => told.zoom(row) }, "Zoom the map to it"));
    }
    controls.append(element("button", { type: "button", on: () => unpin() }, "Unpin (Esc)"));
    header.append(controls);
    panel.replaceChildren(header, ...details(row));
  }

  // The page's address with the pin, or without; a frame in a notebook has none of its own.
  function keep(id) {
    if (id === null && !location.hash.startsWith("#value=")) return;
    try {
      history.replaceState(null, "", id === null ? location.pathname + location.search : `#value=${id}`);
    } catch { /* There is no address to keep it in. */ }
  }

  function changed(id) {
    memhouse.pinned = id;
    memhouse.light?.(id === null ? [] : [id]);
    for (const act of listeners) act(id);
  }

  // Pins a value; false if no value has this id. `isQuiet`: the address stays. `opener`: the element
  // that gets the focus back; until then the panel has the focus.
  function pin(id, { isQuiet = false, opener = null } = {}) {
    const row = told.rowOf(Number(id));
    if (row < 0) return false;
    const hadFocus = panel.contains(document.activeElement);
    show(row);
    if (!isQuiet) keep(values.value_id[row]);
    changed(values.value_id[row]);
    if (opener) openedFrom = opener;
    if (opener || hadFocus) panel.focus({ preventScroll: true });
    if (!isQuiet) reveal();
    return true;
  }

  // Scrolls as far as it takes to see the panel, and the map above it.
  function reveal() {
    const { top, bottom } = panel.getBoundingClientRect(), wanted = .45 * innerHeight;
    if (top < 0) scrollBy(0, top - wanted);
    else if (top > wanted && bottom > innerHeight) scrollBy(0, Math.min(top - wanted, bottom - innerHeight));
  }

  function unpin() {
    const hadFocus = panel.contains(document.activeElement);
    panel.replaceChildren(element("p", { class: "note" },
      "Nothing is pinned. Click a rectangle of the map, or a row of the table of buffers, to see its"
      + " Python stack, what made it, who reads it and what it shares its buffer with."));
    keep(null);
    changed(null);
    if (hadFocus && openedFrom?.isConnected) openedFrom.focus();
    openedFrom = null;
  }

  function fromAddress() {
    const id = /^#value=(\d+)$/.exec(location.hash)?.[1];
    if (id === undefined || Number(id) === memhouse.pinned) return false;
    if (!pin(id)) return false;
    told.zoom(told.rowOf(Number(id)));
    return true;
  }

  Object.assign(memhouse, { pin, unpin, pinned: null, onPin(act) { listeners.push(act); } });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && memhouse.pinned !== null && !event.target.closest("input, select")) unpin();
  });
  addEventListener("hashchange", fromAddress);
  if (!fromAddress()) {
    // What fills most of the peak is what a reader asks first.
    if (!pin(told.first, { isQuiet: true })) unpin();
  }
});
