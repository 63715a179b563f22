const tables = [...document.querySelectorAll("table")];
const rows = tables.flatMap(table => [...table.tBodies[0]?.rows ?? []]);
const form = document.querySelector(".filter");
const numbers = text => {
  const cell = text.replaceAll(",", "").replace("−", "-").match(/^[<~]?([+-]?\d*\.?\d+(?:e[+-]?\d+)?)/);
  return cell ? Number(cell[1]) : NaN;
};

for (const row of rows)
  for (const cell of row.cells) if (cell.textContent.length > 60) cell.className = "long";

for (const table of tables)
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    if (!button.textContent.trim()) button.setAttribute("aria-label", "Sort by this column"), button.append("↕");
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = [...table.tBodies[0].rows].map(row => [row.cells[head.cellIndex].textContent.trim(), row]);
      keyed.sort(([one], [other]) => {
        if (!one || !other) return !one - !other;  // empty cells last, both ways
        const [a, b] = [numbers(one), numbers(other)];
        const order = isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) || one.localeCompare(other) : a - b;
        return down ? -order : order;
      });
      table.tBodies[0].append(...keyed.map(([, row]) => row));
    });
  }

const show = () => {
  const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let left = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
    left += !row.hidden;
  }
  for (const table of tables) table.parentElement.hidden = words.length > 0 && ![...table.tBodies[0].rows].some(row => !row.hidden);
  form.querySelector("output").textContent = `${left} of ${rows.length} rows`;
  history.replaceState(null, "", location.pathname + (words.length ? `#${new URLSearchParams({words: form.words.value})}` : location.hash.startsWith("#words=") ? "" : location.hash));
};
if (rows.length) {
  form.hidden = false;
  form.words.value = new URLSearchParams(location.hash.slice(1)).get("words") ?? "";
  form.words.addEventListener("input", show);
  form.addEventListener("submit", event => event.preventDefault());
  show();
}
document.documentElement.dataset.ready = "yes";
