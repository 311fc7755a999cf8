// Columns of data as they were before packed_columns.py packed them.
Object.assign(memhouse, {
  // Numbers from their differences; -1 is what is missing.
  numbers(differences) {
    const numbers = new Float64Array(differences.length);
    let last = 0;
    for (let row = 0; row < numbers.length; row += 1) numbers[row] = last += differences[row];
    return numbers;
  },

  // All columns of a table by name. A column of texts has `texts`, `rows` (which text each row
  // has) and `at(row)`, which is empty where the text is missing.
  columns(packed) {
    const unpacked = ([name, column]) => {
      if (Array.isArray(column)) return [name, memhouse.numbers(column)];
      const { texts } = column, rows = memhouse.numbers(column.rows);
      return [name, { texts, rows, at: (row) => (row < 0 ? "" : texts[rows[row]] ?? "") }];
    };
    return Object.fromEntries(Object.entries(packed).map(unpacked));
  },
});
