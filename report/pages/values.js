// What is known of each value, as `memhouse.values`: other scripts ask it by a value's row.
memhouse.ready((data) => {
  const packed = data.values;
  if (!packed) return;
  const values = memhouse.columns(packed.values);
  const instructions = memhouse.columns(packed.instructions);
  const frames = memhouse.columns(packed.frames);
  const allocations = memhouse.columns(packed.allocations);
  const readers = memhouse.numbers(packed.readers);
  const ids = values.value_id;
  const firstReader = new Float64Array(ids.length + 1);
  values.named_readers.forEach((count, row) => { firstReader[row + 1] = firstReader[row] + count; });
  const allocationRows = new Map();
  allocations.allocation_index.forEach((index, row) => allocationRows.set(index, row));
  let grouped = null;

  // Rows by what they have in common; worked out once it is asked for.
  function groups() {
    if (grouped) return grouped;
    const by = (column) => {
      const found = new Map();
      column.forEach((key, row) => {
        if (found.has(key)) found.get(key).push(row); else found.set(key, [row]);
      });
      return found;
    };
    grouped = { sets: by(values.alias_set), allocations: by(values.allocation_index) };
    return grouped;
  }

  memhouse.values = {
    values, instructions, frames, allocations,
    count: ids.length, space: packed.space, scheduleLength: packed.schedule_length,
    isEstimated: packed.is_estimated, first: packed.first,

    // The row of a value, by its id; -1 if there is no such value.
    rowOf(id) {
      let low = 0, high = ids.length - 1;
      while (low <= high) {
        const middle = (low + high) >> 1;
        if (ids[middle] === id) return middle;
        if (ids[middle] < id) low = middle + 1; else high = middle - 1;
      }
      return -1;
    },
    instructionName(row) {
      const number = instructions.number[row];
      return instructions.stem.at(row) + (number < 0 ? "" : number);
    },
    name(row) {
      const part = values.shape_index.at(row);
      return this.instructionName(values.made_by[row]) + (part === "{}" ? "" : part);
    },
    // The instruction whose result the value holds: its maker, if nothing else is known.
    held(row) { return values.origin[row] < 0 ? values.made_by[row] : values.origin[row]; },
    isGuess(row) { return ["operand", "weak"].includes(values.origin_rule.at(row)); },
    // As everywhere on the page: without layout, and the file without its folders.
    shortShape(text) { return text.replace(/(\])\{[^{}]*\}|\/\*index=\d+\*\//g, "$1"); },
    shortSource(text) { return text.slice(text.lastIndexOf("/") + 1); },
    size(bytes) { return (packed.is_estimated ? "≈" : "") + memhouse.formatBytes(bytes); },
    allocationRow(row) { return allocationRows.get(values.allocation_index[row]) ?? -1; },
    readers(row) { return readers.subarray(firstReader[row], firstReader[row + 1]); },
    // The Python frames of an instruction, the innermost first.
    stack(instruction) {
      const stack = [];
      for (let frame = instructions.frame[instruction]; frame >= 0; frame = frames.caller[frame]) {
        if (stack.length > 500) break;
        stack.push({ place: frames.place.at(frame), name: frames.function.at(frame) });
      }
      return stack;
    },
    // The other values that must have the same buffer.
    aliases(row) { return groups().sets.get(values.alias_set[row]).filter((other) => other !== row); },
    // The other values that lie at its addresses, where its allocation is not one of temps.
    sharing(row) {
      const allocation = this.allocationRow(row);
      if (allocation < 0 || allocations.holds.at(allocation) === "temp") return [];
      const from = values.offset_bytes[row], to = from + values.size_bytes[row];
      return groups().allocations.get(values.allocation_index[row]).filter((other) => other !== row
        && values.alias_set[other] !== values.alias_set[row]
        && values.offset_bytes[other] < to
        && values.offset_bytes[other] + values.size_bytes[other] > from);
    },
    // Where the value is in the map; null if it has no place there.
    place(row) {
      const allocation = this.allocationRow(row);
      if (allocation < 0 || allocations.base[allocation] < 0) return null;
      const isTemp = allocations.holds.at(allocation) === "temp";
      if (isTemp && values.start_time[row] < 0) return null;
      const bottom = allocations.base[allocation] + Math.max(values.offset_bytes[row], 0);
      return {
        left: isTemp ? values.start_time[row] : 0,
        right: isTemp ? values.end_time[row] + 1 : packed.schedule_length + 1,
        bottom, top: bottom + values.size_bytes[row],
      };
    },
    // Shows the value in the map.
    zoom(row) {
      const place = this.place(row);
      if (place) memhouse.zoomTo?.(place);
    },
  };
});
