// The findings of advice: a button lights the buffers of its finding in the address map, and a
// second press puts them out. A line under the map says what is lit, and leads back.
memhouse.ready((data) => {
  const buttons = [...document.querySelectorAll("#advice button[aria-pressed]")];
  const chart = document.querySelector('.chart[data-model="address_map"]');
  if (!chart || !buttons.length) return;
  const { values } = memhouse;
  const line = document.createElement("div");
  line.id = "advice-lit";
  line.className = "controls";
  line.setAttribute("role", "status");
  chart.after(line);
  let lit = null;

  function control(text, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", act);
    return button;
  }

  // Values with all that must have the same buffer, at other times perhaps.
  function wholeBuffers(ids) {
    const rows = ids.map((id) => values.rowOf(id)).filter((row) => row >= 0);
    return [...ids, ...rows.flatMap((row) => values.aliases(row)).map((row) => values.values.value_id[row])];
  }

  // Marks one button as pressed, or none.
  function mark(button) {
    lit = button;
    for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
    line.replaceChildren();
    if (!button) return;
    const title = button.closest("li").querySelector("h3 bdi").textContent;
    line.append(`Lit: ${title}`, control("Put out", () => {
      button.focus({ preventScroll: true });
      putOut();
    }), control("Back to the advice", () => {
      button.scrollIntoView({ block: "center" });
      button.focus({ preventScroll: true });
    }));
  }

  function putOut() {
    mark(null);
    memhouse.light(memhouse.pinned === null ? [] : [memhouse.pinned]);
  }

  // Whatever the reader has zoomed into, some of what is lit is in sight.
  function bringIntoSight(ids) {
    const places = ids.map((id) => values.place(values.rowOf(id))).filter(Boolean);
    const { x_range: x, y_range: y } = memhouse.model("address_map");
    const isInSight = ({ left, right, bottom, top }) => left < x.end && right > x.start && bottom < y.end && top > y.start;
    if (!places.length || places.some(isInSight)) return;
    const edge = (side, of) => of(...places.map((place) => place[side]));
    memhouse.zoomTo({
      left: edge("left", Math.min), right: edge("right", Math.max),
      bottom: edge("bottom", Math.min), top: edge("top", Math.max),
    });
  }

  function press(button) {
    if (button === lit) { putOut(); return; }
    const ids = wholeBuffers(data.advice[button.dataset.finding]);
    memhouse.light(ids);
    mark(button);
    bringIntoSight(ids);
    const { top } = chart.getBoundingClientRect();
    if (top < 0 || line.getBoundingClientRect().bottom > innerHeight) chart.scrollIntoView({ block: "center" });
  }

  for (const button of buttons) button.addEventListener("click", () => press(button));
  // A pin lights its own buffer.
  memhouse.onPin(() => mark(null));
});
