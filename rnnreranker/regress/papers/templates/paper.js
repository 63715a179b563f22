"use strict";
const form = document.querySelector(".filters"), count = document.getElementById("count");
const cells = [...document.querySelectorAll("td [popovertarget]")];
function filter() { // hides what the form leaves out; matrix.css hides rows and tables without a cell
  const wanted = [...new FormData(form)].filter(([, value]) => value);
  document.body.classList.toggle("filtered", wanted.length > 0);
  for (const cell of cells) cell.closest("td").classList.toggle("off", wanted.some(([name, value]) => cell.dataset[name] !== value));
  const shown = cells.filter(cell => !cell.closest(".off")), tables = wanted.length ? shown.map(cell => cell.closest("details")) : [];
  for (const table of new Set(tables)) {
    const first = table.querySelector(".measured:not(.off)"), scroll = first.closest(".scroll");
    table.open = true;
    scroll.scrollLeft = first.offsetLeft - scroll.querySelector(".head").offsetWidth;
  }
  for (const key of document.querySelectorAll(".key")) key.setAttribute("aria-pressed", key.dataset.key === form.elements.state.value);
  count.value = wanted.length ? `${shown.length} of ${cells.length} cells` : `${cells.length} cells`;
  const opened = document.querySelector(":popover-open");
  const text = new URLSearchParams(opened ? [...wanted, ["open", opened.id]] : wanted).toString();
  history.replaceState(null, "", text ? "#" + text : location.pathname);
}
function read() { // #state=changed&dataset=A&table=ID&open=ID, or #ID of a table
  const text = location.hash.slice(1), parts = new URLSearchParams(text.includes("=") ? text : {table: text});
  for (const {name, options} of form.querySelectorAll("select")) {
    form.elements[name].selectedIndex = Math.max(0, [...options].findIndex(one => one.value === (parts.get(name) ?? "")));
  }
  const [table, opened] = ["table", "open"].map(name => document.getElementById(parts.get(name)));
  filter();
  if (table?.matches("details")) table.open = true;
  table?.scrollIntoView();
  if (opened?.popover) opened.showPopover();
}
form.addEventListener("change", filter);
form.addEventListener("reset", () => setTimeout(filter));
for (const one of document.querySelectorAll("[popover]")) one.addEventListener("toggle", filter);
for (const key of document.querySelectorAll(".key")) key.addEventListener("click", () => {
  form.elements.state.value = form.elements.state.value === key.dataset.key ? "" : key.dataset.key;
  filter();
});
window.addEventListener("hashchange", read);
read();
document.documentElement.dataset.ready = "yes";
