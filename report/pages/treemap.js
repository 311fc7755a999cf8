// The treemap: shows the layout of one owner at a time. A click or Enter enters an owner, the
// buttons of the path or Escape leave it. Layouts come from the warehouse; here they only get
// labels that fit.
memhouse.ready((data) => {
  const plot = memhouse.model("treemap");
  const given = data.treemap;
  if (!plot || !given) return;
  const [WHOLE, HEADED, FRAME, INNER] = [0, 1, 2, 3];
  const tiles = memhouse.model("treemap_tiles"), chosen = memhouse.model("treemap_chosen");
  const by = document.getElementById("treemap-by");
  const path = document.getElementById("treemap-path");
  const said = document.getElementById("treemap-said");
  const place = path.closest("figure").querySelector(".chart");
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px sans-serif";
  // Which owner is shown, its rectangles, and the one that the keyboard has chosen.
  let tree = given.trees[by.value], shown = 0, rects = [], picked = -1;

  const text = (number) => given.strings[number];
  const sizeOf = (owner) => given.mark + memhouse.formatBytes(tree.size_bytes[owner]);
  const canEnter = (owner) => owner in tree.layouts.wide;
  const namesTo = (owner) => (owner <= 0 ? [] : [...namesTo(tree.parent[owner]), text(tree.name[owner])]);

  // What there is to say of an owner: the texts of the hover, by their names.
  function factsOf(owner) {
    const share = (100 * tree.size_bytes[owner]) / tree.size_bytes[0];
    const count = tree.buffers[owner];
    return {
      owner: namesTo(owner).join(" › ") || "peak",
      size: `${sizeOf(owner)}, ${share.toFixed(share < 1 ? 2 : 1)} % of the peak`,
      holds: canEnter(owner) ? `${count} buffers` : text(tree.detail[owner]),
    };
  }

  const sentence = (owner) => Object.values(factsOf(owner)).filter(Boolean).join(" · ");

  // As much of a label as fits, by halves: a name can have thousands of characters.
  function clipped(label, width) {
    const fits = (words) => pen.measureText(words).width <= width;
    if (fits(label)) return label;
    let fitting = 0, tooLong = label.length;
    while (tooLong - fitting > 1) {
      const middle = (fitting + tooLong) >> 1;
      if (fits(`${label.slice(0, middle)}…`)) fitting = middle; else tooLong = middle;
    }
    return fitting > 1 ? `${label.slice(0, fitting)}…` : "";
  }

  // A label only where there is room for it.
  function labelOf({ owner, kind, left, top, right, bottom }, stretch) {
    const width = (right - left) * stretch - 8, height = bottom - top;
    if (kind === FRAME || width < 22 || height < 16) return "";
    const name = text(tree.name[owner]);
    if (kind === HEADED) return clipped(`${name}  ${sizeOf(owner)}`, width);
    const first = clipped(name, width);
    return first && height >= 32 ? `${first}\n${clipped(sizeOf(owner), width)}` : first;
  }

  function draw() {
    const width = plot.inner_width || place.clientWidth || given.widths.wide;
    const shape = width < 640 ? "narrow" : "wide";
    const numbers = tree.layouts[shape][shown];
    rects = [];
    for (let at = 0; at < numbers.length; at += 6) {
      const [owner, kind, left, top, right, bottom] = numbers.slice(at, at + 6);
      rects.push({ owner, kind, left, top, right, bottom });
    }
    const drawn = rects.filter((rect) => rect.kind !== FRAME);
    const stretch = width / given.widths[shape];
    const column = (of) => drawn.map(of);
    tiles.data = {
      left: column((rect) => rect.left), top: column((rect) => rect.top),
      right: column((rect) => rect.right), bottom: column((rect) => rect.bottom),
      fill: column((rect) => text(tree.colour[rect.owner])),
      ink: column((rect) => given.inks[tree.ink[rect.owner]]),
      owner: column((rect) => rect.owner),
      label: column((rect) => labelOf(rect, stretch)),
    };
    plot.x_range.setv({ start: 0, end: given.widths[shape] });
    pick(-1);
    showPath();
  }

  function showPath() {
    const owners = [];
    for (let owner = shown; owner >= 0; owner = tree.parent[owner]) owners.unshift(owner);
    path.replaceChildren(...owners.map((owner) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${owner ? text(tree.name[owner]) : "peak"} ${sizeOf(owner)}`;
      if (owner === shown) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => show(owner));
      return button;
    }));
  }

  function show(owner) {
    shown = owner;
    draw();
    said.textContent = sentence(owner);
  }

  // What can be entered or chosen: the children of the owner that is shown.
  const children = () => rects.filter((rect) => rect.kind === WHOLE || rect.kind === FRAME);

  function pick(number) {
    picked = number;
    const rect = children()[picked];
    chosen.data = rect
      ? { left: [rect.left], top: [rect.top], right: [rect.right], bottom: [rect.bottom] }
      : { left: [], top: [], right: [], bottom: [] };
    if (rect) said.textContent = sentence(rect.owner);
  }

  function enter(rect) {
    if (!rect) return;
    if (canEnter(rect.owner)) show(rect.owner);
    else pick(children().indexOf(rect));
  }

  const leave = () => { if (shown > 0) show(tree.parent[shown]); };

  plot.on_event("tap", ({ x, y }) => {
    enter(children().find((r) => r.left <= x && x < r.right && r.top <= y && y < r.bottom));
  });
  place.tabIndex = 0;
  place.addEventListener("keydown", (event) => {
    const count = children().length;
    const acts = {
      ArrowRight: () => pick((picked + 1) % count),
      ArrowDown: () => pick((picked + 1) % count),
      ArrowLeft: () => pick((Math.max(picked, 0) + count - 1) % count),
      ArrowUp: () => pick((Math.max(picked, 0) + count - 1) % count),
      Enter: () => enter(children()[picked]),
      Escape: leave,
      Backspace: leave,
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  });
  by.addEventListener("change", () => {
    tree = given.trees[by.value];
    show(0);
  });
  // Labels are clipped to the width, and a narrow page has layouts of its own.
  let width = 0;
  new ResizeObserver(() => {
    if (place.clientWidth !== width) { width = place.clientWidth; setTimeout(draw, 60); }
  }).observe(place);

  // Gaps between rectangles are of the page's paper.
  const quads = memhouse.model("treemap_quads");
  const line = () => quads.glyph.setv({ line_color: memhouse.colour("paper") });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", line);
  line();

  // `told` is what the hover shows; the rest is for other scripts and for tests.
  memhouse.treemap = {
    told: (index) => factsOf(tiles.data.owner[index]),
    show,
    leave,
    state: () => ({ by: by.value, shown, names: namesTo(shown), sizeBytes: tree.size_bytes[shown], rects }),
  };
  draw();
});
