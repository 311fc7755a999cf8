// The switch above a waterfall: by what the change of the peak is summed.
memhouse.ready((data) => {
  for (const select of document.querySelectorAll("select[data-waterfall]")) {
    const name = select.dataset.waterfall;
    select.addEventListener("change", () => {
      const { height, ...columns } = data[name][select.value];
      const plot = memhouse.model(name);
      plot.setv({ height });
      plot.y_range.setv({ start: columns.name.length - 0.4, end: -0.6 });
      memhouse.model(`${name}_bars`).data = columns;
    });
  }
});
