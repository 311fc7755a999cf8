// What tests ask of an open report. Each function returns plain values.
const probes = (() => {
  // The channels of a colour as the browser computes it: red, green, blue and opacity.
  function channels(colour) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, opacity] = pen.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, opacity / 255];
  }

  // Relative luminance and contrast as WCAG 2.2 defines them.
  function luminance(colour) {
    const [red, green, blue] = channels(colour).slice(0, 3).map((channel) => {
      const part = channel / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function contrast(one, other) {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  }

  function backgroundOf(element) {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour)[3] === 1) return colour;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#ffffff";
  }

  // Texts of the page with their contrast, one a kind of element.
  function textContrasts() {
    const found = new Map();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      const text = walker.currentNode.textContent.trim();
      if (!text || !element.checkVisibility() || element.closest("script, style")) continue;
      const ink = getComputedStyle(element).color, paper = backgroundOf(element);
      const key = `${element.tagName} ${ink} ${paper}`;
      if (found.has(key)) continue;
      found.set(key, { text: text.slice(0, 40), element: element.tagName, ink, paper, ratio: contrast(ink, paper) });
    }
    return [...found.values()];
  }

  // The same for what charts draw as text.
  function chartTextContrasts() {
    const paper = getComputedStyle(document.body).backgroundColor;
    const found = new Map();
    for (const model of (window.Bokeh?.documents ?? []).flatMap((each) => [...each.all_models])) {
      for (const name of ["axis_label_text_color", "major_label_text_color", "title_text_color"]) {
        const ink = model.attributes?.[name];
        if (typeof ink === "string") found.set(`${name} ${ink}`, { text: name, ink, paper, ratio: contrast(ink, paper) });
      }
    }
    return [...found.values()];
  }

  // Elements that stick out of the window and are not in a box that scrolls.
  function tooWide() {
    const scrolls = (element) => {
      for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
        if (getComputedStyle(at).overflowX !== "visible") return true;
      }
      return false;
    };
    const width = document.documentElement.clientWidth;
    return [...document.body.querySelectorAll("*")]
      .filter((each) => each.getBoundingClientRect().right > width + 1 && !scrolls(each))
      .map((each) => `${each.tagName}#${each.id}.${each.className}`);
  }

  function viewOf(name) {
    return Bokeh.index.find_one(memhouse.model(name));
  }

  // Where a chart's frame lies in the window.
  function frame(name) {
    const view = viewOf(name);
    view.el.scrollIntoView({ block: "center", behavior: "instant" });
    const canvas = view.canvas_view.el.getBoundingClientRect();
    const box = view.frame.bbox;
    return { left: canvas.left + box.left, top: canvas.top + box.top, width: box.width, height: box.height };
  }

  // Where a point of a chart lies in the window.
  function point(name, x, y) {
    const { left, top } = frame(name);
    const { frame: drawn } = viewOf(name);
    return {
      x: left + drawn.x_scale.compute(x) - drawn.bbox.left,
      y: top + drawn.y_scale.compute(y) - drawn.bbox.top,
    };
  }

  function range(name, axis = "x") {
    const { start, end } = memhouse.model(name)[`${axis}_range`];
    return [start, end];
  }

  // Dragging then moves what is shown, as after a click on the tool.
  function dragWith(name, type) {
    for (const tool of memhouse.model(name).toolbar.tools) if (tool.type === type) tool.active = true;
  }

  // Every address that the page names where a browser would load or follow it.
  function addresses() {
    const names = ["src", "href", "action", "formaction", "data", "poster", "srcset", "xlink:href"];
    return [...document.querySelectorAll("*")].flatMap((each) =>
      names.filter((name) => each.hasAttribute(name)).map((name) => each.getAttribute(name)));
  }

  // Use every control of the page: unfold, press, choose each choice, type, follow links within.
  async function useControls() {
    for (const each of document.querySelectorAll("details")) each.open = true;
    for (const each of document.querySelectorAll("button, a[href^='#'], tbody tr")) each.click();
    for (const each of document.querySelectorAll("select")) {
      for (const option of each.options) {
        each.value = option.value;
        each.dispatchEvent(new Event("input", { bubbles: true }));
        each.dispatchEvent(new Event("change", { bubbles: true }));
      }
    }
    for (const each of document.querySelectorAll("input")) {
      each.focus();
      each.value = "<";
      each.dispatchEvent(new Event("input", { bubbles: true }));
      each.dispatchEvent(new Event("change", { bubbles: true }));
    }
    await nextFrame();
  }

  const nextFrame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

  function chartCount() {
    return document.querySelectorAll(".chart").length;
  }

  // Places in the window that lie all over a chart, which is scrolled into sight.
  function placesOfChart(number) {
    const chart = document.querySelectorAll(".chart")[number];
    chart.scrollIntoView({ block: "center", behavior: "instant" });
    const { left, top, width, height } = chart.getBoundingClientRect();
    const steps = [0.2, 0.5, 0.8];
    return steps.flatMap((x) => steps.map((y) => [left + x * width, top + y * height]))
      .filter(([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight);
  }

  // The rectangles of a map as it is drawn.
  const rectangles = () => memhouse.model("map_rectangles").data;

  // A buffer that a click into its middle can mean: one of the largest, uppermost there.
  function largeBuffer(rank) {
    const { left, right, bottom, top, value_id } = rectangles();
    const area = (row) => (right[row] - left[row]) * (top[row] - bottom[row]);
    const rows = Array.from(left, (_, row) => row).filter((row) => value_id[row] >= 0);
    const found = rows.sort((a, b) => area(b) - area(a)).map((row) => ({
      row, value: value_id[row], x: (left[row] + right[row]) / 2, y: (bottom[row] + top[row]) / 2,
    })).filter(({ row, x, y }) => !left.some((_, other) => other > row
      && left[other] <= x && x < right[other] && bottom[other] <= y && y < top[other]));
    return found[rank];
  }

  // The bytes that rectangles cover at a position of the schedule, each once.
  function coveredBytes(time) {
    const { left, right, bottom, top } = rectangles();
    const rows = Array.from(left, (_, row) => row).filter((row) => left[row] <= time && time < right[row]);
    let covered = 0, end = -Infinity;
    for (const row of rows.sort((a, b) => bottom[a] - bottom[b])) {
      covered += Math.max(0, top[row] - Math.max(bottom[row], end));
      end = Math.max(end, top[row]);
    }
    return covered;
  }

  return {
    addresses, coveredBytes, largeBuffer, chartCount, placesOfChart, useControls, chartTextContrasts, contrast, dragWith, frame, point, range, textContrasts, tooWide,
    nextFrame,
  };
})();
