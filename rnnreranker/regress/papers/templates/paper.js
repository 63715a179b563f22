"use strict";
(() => {
const known = readable(JSON.parse(document.getElementById("cells").textContent));
const form = document.querySelector(".filters"), dialog = document.getElementById("details");
const buttons = [...document.querySelectorAll("[data-cell]")], tables = [...document.querySelectorAll("details.table")];
const openAtFirst = new Map(tables.map(table => [table, table.open]));
const names = ["dataset", "state"];
const shown = ".measured:not(.off) [data-cell]";
let opener = null;

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function readable(numbered) { // every text stands once: cells and details have its number
  const text = number => {
    const one = numbered.texts[number];
    return Array.isArray(one) ? one.map(text).join(" ") : one;
  };
  const pairs = flat => flat.flatMap((_, at) => at % 2 ? [] : [[text(flat[at]), text(flat[at + 1])]]);
  const cells = numbered.cells.map(row => ({
    ...Object.fromEntries(numbered.keys.map((key, at) => [key, text(row[at])])), about: row.at(-1)}));
  const details = numbered.details.map(({commands, parameters, history}) => (
    {commands: commands.map(text), parameters: pairs(parameters), history: history.map(pairs)}));
  return {cells, details, states: numbered.states};
}

function filter() {
  const [dataset, state] = names.map(name => form.elements[name].value), any = Boolean(dataset || state);
  for (const button of buttons) {
    const cell = known.cells[button.dataset.cell], measured = button.parentElement;
    const off = Boolean(dataset && cell.group !== dataset || state && cell.state !== state);
    for (const part of [measured, measured.previousElementSibling]) part.classList.toggle("off", off);
  }
  for (const row of document.querySelectorAll("tbody tr")) row.hidden = any && !row.querySelector(shown);
  for (const table of tables) {
    const first = table.querySelector(shown);
    table.hidden = !first;
    table.open = any ? Boolean(first) : openAtFirst.get(table);
    if (any && first) show(first.parentElement.previousElementSibling);
  }
  for (const key of document.querySelectorAll(".key")) key.setAttribute("aria-pressed", key.dataset.state === state);
  const count = document.querySelectorAll(shown).length, all = `${buttons.length.toLocaleString("en")} cells`;
  document.getElementById("count").value = any ? `${count.toLocaleString("en")} of ${all}` : all;
}

function show(cell) { // beside the names of the rows, which cover what scrolls under them
  const scroll = cell.closest(".scroll");
  scroll.scrollLeft = cell.offsetLeft - scroll.querySelector("th.head").offsetWidth;
}

function address() {
  const parts = new URLSearchParams();
  for (const name of names) if (form.elements[name].value) parts.set(name, form.elements[name].value);
  if (dialog.open && opener) parts.set("open", known.cells[opener.dataset.cell].id);
  const text = parts.toString();
  history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
}

function read() {
  const text = location.hash.slice(1), parts = new URLSearchParams(text);
  if (text && !text.includes("=")) return reveal(document.getElementById(decodeURIComponent(text)));
  for (const name of names) {
    const select = form.elements[name], value = parts.get(name) || "";
    select.value = [...select.options].some(option => option.value === value) ? value : "";
  }
  filter();
  document.getElementById(parts.get("table"))?.scrollIntoView();
  const button = buttons.find(one => known.cells[one.dataset.cell].id === parts.get("open"));
  if (button) open(button);
  else if (dialog.open) dialog.close();
}

function reveal(target) {
  if (!target) return;
  if (target.closest("[hidden]")) { form.reset(); filter(); }
  if (target.closest("details")) target.closest("details").open = true;
  target.scrollIntoView();
  if (target.closest(".scroll")) show(target);
}

function open(button) {
  opener = button;
  const cell = known.cells[button.dataset.cell], about = known.details[cell.about], [sign, says] = known.states[cell.state];
  const section = (title, made) => [element("h3", {}, title), made];
  const twins = [...button.closest("tr").querySelectorAll("td.twin")].filter(one => one.textContent && one.title)
    .map(one => element("li", {}, `${one.title}: ${one.dataset.measure} ${one.textContent}`));
  const past = about.history.map(entry => element("li", {}, entry.map(pair => pair.join(" ")).join(", "))).reverse();
  const commands = element("pre", {tabindex: "0", "aria-label": "Commands"}, ...about.commands.map(line => element("span", {}, line + "\n")));
  const spec = document.querySelector(`header [data-page="${CSS.escape(Object.fromEntries(about.parameters).spec)}"]`);
  document.getElementById("d-body").replaceChildren(
    element("h2", {id: "d-title"}, cell.row),
    element("p", {class: "note"}, [cell.where, cell.dataset, cell.measure, cell.protocol && `protocol ${cell.protocol}`].filter(Boolean).join(" · ")),
    pairs("values", ["published", "measured", "difference"].map(name => [name, cell[name] || "–"])),
    element("p", {}, element("span", {class: "badge s-" + cell.state.replaceAll(" ", "-")}, `${sign} ${cell.state}`), ` ${says}`),
    ...(cell.note ? [element("p", {}, cell.note)] : []),
    ...(cell.tuned ? [element("p", {}, "† The paper chose parameters of this system on the set that it reports, or on a part of it.")] : []),
    ...section("Commands", about.commands.length ? commands : element("p", {}, cell.state === "external" ? "None: there is nothing to run." : "None yet.")),
    ...(about.parameters.length ? section("Parameters", pairs("params", about.parameters)) : []),
    ...(twins.length ? section("Twins: another model, other collections", element("ul", {class: "twins"}, ...twins)) : []),
    ...(about.history.length ? section("History", element("ul", {}, ...past)) : []),
    element("p", {class: "links"}, element("a", {class: "link", href: "#open=" + encodeURIComponent(cell.id)}, "link to this cell"),
      ...(spec ? [element("a", {class: "link", href: spec.getAttribute("href")}, `page of ${spec.dataset.page}`)] : [])));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  button.closest("details").open = true;
  address();
}

function pairs(kind, entries) {
  return element("dl", {class: kind}, ...entries.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));
}

document.addEventListener("click", event => {
  const button = event.target.closest("[data-cell]"), key = event.target.closest(".key");
  if (button) open(button);
  else if (event.target === dialog) dialog.close();
  if (!key) return;
  form.elements.state.value = key.getAttribute("aria-pressed") === "true" ? "" : key.dataset.state;
  form.dispatchEvent(new Event("change"));
});
dialog.addEventListener("close", () => {
  address();
  if (opener) opener.focus();
});
form.addEventListener("change", () => { filter(); address(); });
form.addEventListener("reset", () => setTimeout(() => { filter(); address(); }));
form.addEventListener("submit", event => event.preventDefault());
window.addEventListener("hashchange", read);
filter();
read();
document.documentElement.dataset.ready = "yes";
})();
