// The maps and timelines of A and B stand side by side: both are shown by the same.
memhouse.ready(() => {
  const sides = [["map_a", "map_b"], ["memory_timeline_a", "memory_timeline_b"]];
  for (const select of document.querySelectorAll("select[id]")) {
    for (const [a, b] of sides.flatMap((pair) => [pair, [pair[1], pair[0]]])) {
      if (!select.id.startsWith(a)) continue;
      const other = document.getElementById(select.id.replace(a, b));
      select.addEventListener("change", () => {
        if (!other || other.value === select.value) return;
        other.value = select.value;
        other.dispatchEvent(new Event("change"));
      });
    }
  }
});
