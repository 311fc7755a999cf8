// The flame graph: the peak by stack, a row a depth. A click or Enter shows what is below a frame,
// Escape or a click on a frame above leaves it. Frames too narrow to see are drawn once their
// parent is shown.
memhouse.ready((data) => {
  const given = data.flame;
  if (!given) return;
  const ROW = 20, NARROWEST = .08;
  const place = document.getElementById("flame");
  const by = document.getElementById("flame-by");
  const search = document.getElementById("flame-search");
  const said = document.getElementById("flame-said");
  // Which frame is shown over the whole width, and the one that the keyboard or the mouse has.
  let tree = given.trees[by.value], children = [], shown = 0, picked = 0, drawn = new Map();

  const text = (number) => given.strings[number];
  const nameOf = (frame) => (frame ? text(tree.name[frame]) : "peak");
  const share = (bytes) => `${given.mark}${memhouse.formatBytes(bytes)}, ${(100 * bytes / tree.size_bytes[0]).toFixed(2)} % of the peak`;
  const sentence = (frame) => [nameOf(frame), share(tree.size_bytes[frame]), text(tree.file[frame])].filter(Boolean).join(" · ");
  const isAlike = (frame, words) => `${nameOf(frame)} ${text(tree.file[frame])}`.toLowerCase().includes(words);

  function take(name) {
    tree = given.trees[name];
    children = tree.parent.map(() => []);
    tree.parent.forEach((parent, frame) => { if (parent >= 0) children[parent].push(frame); });
    show(0);
  }

  function bar(frame, depth, left, width) {
    const made = document.createElement("div");
    made.id = `flame-${frame}`;
    made.className = depth < depthOf(shown) ? "above" : given.kinds[tree.kind[frame]];
    made.textContent = width > 1 ? nameOf(frame) : "";
    made.title = sentence(frame);
    made.setAttribute("role", "treeitem");
    made.setAttribute("aria-level", depth + 1);
    made.setAttribute("aria-label", made.title);
    Object.assign(made.style, { left: `${left}%`, width: `${width}%`, top: `${depth * ROW}px` });
    drawn.set(frame, made);
    if (depth < depthOf(shown)) return 1;
    let deepest = depth + 1, at = left;
    for (const child of children[frame]) {
      const wide = width * tree.size_bytes[child] / tree.size_bytes[frame];
      if (wide >= NARROWEST) deepest = Math.max(deepest, bar(child, depth + 1, at, wide));
      at += wide;
    }
    return deepest;
  }

  const pathTo = (frame) => (frame < 0 ? [] : [...pathTo(tree.parent[frame]), frame]);
  const depthOf = (frame) => pathTo(frame).length - 1;

  function show(frame) {
    shown = frame;
    drawn = new Map();
    let deepest = 0;
    pathTo(frame).forEach((each, depth) => { deepest = bar(each, depth, 0, 100); });
    place.replaceChildren(...drawn.values());
    place.style.height = `${deepest * ROW + 2}px`;
    pick(frame);
    find();
  }

  function pick(frame) {
    if (!drawn.has(frame)) return;
    drawn.get(picked)?.removeAttribute("aria-selected");
    picked = frame;
    drawn.get(frame).setAttribute("aria-selected", "true");
    place.setAttribute("aria-activedescendant", `flame-${frame}`);
    said.textContent = sentence(frame);
  }

  // Lights what bears the words; a frame below another that does counts with it.
  function find() {
    const words = search.value.trim().toLowerCase();
    let frames = 0, bytes = 0;
    const isLit = [], isBelow = [];
    tree.name.forEach((_, frame) => {
      isLit[frame] = words !== "" && isAlike(frame, words);
      isBelow[frame] = frame > 0 && (isLit[tree.parent[frame]] || isBelow[tree.parent[frame]]);
      frames += isLit[frame];
      if (isLit[frame] && !isBelow[frame]) bytes += tree.size_bytes[frame];
      drawn.get(frame)?.classList.toggle("lit", isLit[frame]);
    });
    if (words) said.textContent = `${frames} ${frames === 1 ? "frame" : "frames"}: ${share(bytes)}`;
  }

  // The sibling so many places further that is drawn; the frame itself if there is none.
  function beside(frame, step) {
    const siblings = (children[tree.parent[frame]] ?? [frame]).filter((each) => drawn.has(each));
    return siblings[siblings.indexOf(frame) + step] ?? frame;
  }

  const frameOf = (event) => Number(event.target.closest("[role=treeitem]")?.id.slice("flame-".length) ?? -1);
  place.addEventListener("click", (event) => { if (frameOf(event) >= 0) show(frameOf(event)); });
  place.addEventListener("mouseover", (event) => pick(frameOf(event)));
  place.addEventListener("keydown", (event) => {
    const acts = {
      ArrowDown: () => pick(children[picked].find((child) => drawn.has(child)) ?? picked),
      ArrowUp: () => pick(Math.max(tree.parent[picked], 0)),
      ArrowRight: () => pick(beside(picked, 1)),
      ArrowLeft: () => pick(beside(picked, -1)),
      Enter: () => show(picked),
      Escape: () => show(Math.max(tree.parent[shown], 0)),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  });
  by.addEventListener("change", () => take(by.value));
  search.addEventListener("input", find);
  memhouse.flame = { show, state: () => ({ by: by.value, shown, picked, sizeBytes: tree.size_bytes[shown], drawn: [...drawn.keys()] }) };
  const help = said.textContent;
  take(by.value);
  said.textContent = help;
});
