"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.replace("−", "-");
    return text === "" ? null : isNaN(text) ? text : Number(text);
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => (down && a !== null && b !== null ? compare(b, a) : compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
