"use strict";
(() => {
const known = readable(JSON.parse(document.getElementById("cells").textContent));
const form = document.querySelector(".filters");
const dialog = document.getElementById("details");
const buttons = [...document.querySelectorAll("[data-cell]")];
for (const button of buttons) button.setAttribute("aria-haspopup", "dialog");
const byId = new Map(buttons.map(button => [known.cells[button.dataset.cell].id, button]));
const dots = [...document.querySelectorAll(".dots i")]; // in the order of the buttons
const names = ["dataset", "state"];
const wasOpen = new Map([...document.querySelectorAll("details.table")].map(table => [table, table.open]));
let opener = null;

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
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

function matches(cell, wanted) {
  return (!wanted.dataset || cell.group === wanted.dataset) && (!wanted.state || cell.state === wanted.state);
}

function filter() {
  const wanted = Object.fromEntries(names.map(name => [name, form.elements[name].value]));
  const any = names.some(name => wanted[name]);
  let count = 0;
  for (const table of document.querySelectorAll("details.table")) {
    let inTable = 0;
    for (const row of table.querySelectorAll("tbody tr")) {
      let inRow = 0;
      for (const button of row.querySelectorAll("[data-cell]")) {
        const yes = matches(known.cells[button.dataset.cell], wanted);
        const measured = button.parentElement;
        for (const part of [measured, measured.previousElementSibling]) part.classList.toggle("off", !yes);
        inRow += yes;
      }
      row.hidden = any && inRow === 0;
      inTable += inRow;
    }
    if (inTable) columns(table);
    table.hidden = inTable === 0;
    table.open = any ? inTable > 0 : wasOpen.get(table);
    count += inTable;
  }
  for (const key of document.querySelectorAll(".key")) key.setAttribute("aria-pressed", key.dataset.state === wanted.state);
  const said = number => number.toLocaleString("en") + " cells";
  document.getElementById("count").value = any ? `${count.toLocaleString("en")} of ${said(buttons.length)}` : said(count);
  document.getElementById("none").hidden = count > 0;
  buttons.forEach((button, at) => dots[at].classList.toggle("off", button.parentElement.classList.contains("off")));
  enter();
}

function columns(table) {
  const [groups, measures, kinds] = [...table.querySelectorAll("thead tr")].map(row => [...row.cells].filter(cell => !cell.classList.contains("twin")));
  const rows = [...table.querySelectorAll("tbody tr, tfoot tr")].map(row => [...row.cells]);
  const shown = measures.map((_, at) => rows.some(row => row[2 * at + 2].querySelector("[data-cell]") && !row[2 * at + 2].classList.contains("off")));
  let at = 0;
  for (const group of groups.slice(1)) {
    const inside = shown.slice(at, at + Number(group.dataset.columns));
    at += inside.length;
    const width = inside.filter(Boolean).length;
    group.hidden = width === 0;
    group.colSpan = 2 * Math.max(width, 1);
  }
  shown.forEach((yes, column) => {
    measures[column].hidden = !yes;
    for (const side of [0, 1]) {
      kinds[2 * column + side].hidden = !yes;
      for (const row of rows) row[2 * column + side + 1].hidden = !yes;
    }
  });
}

function enter() {
  for (const table of document.querySelectorAll("details.table table")) {
    const inside = [...table.querySelectorAll("[data-cell]")];
    if (!inside.some(button => button.tabIndex === 0 && visible(button))) {
      for (const button of inside) button.tabIndex = -1;
      const first = inside.find(visible);
      if (first) first.tabIndex = 0;
    }
  }
}

function visible(button) {
  return !button.closest("tr").hidden && !button.parentElement.classList.contains("off");
}

function address() {
  const parts = new URLSearchParams();
  for (const name of names) if (form.elements[name].value) parts.set(name, form.elements[name].value);
  if (dialog.open && opener) parts.set("open", known.cells[opener.dataset.cell].id);
  const text = parts.toString();
  history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
}

function read() {
  const text = location.hash.slice(1);
  const parts = new URLSearchParams(text);
  if (text && !text.includes("=")) return reveal(document.getElementById(decodeURIComponent(text)));
  for (const name of names) {
    const select = form.elements[name], value = parts.get(name) || "";
    select.value = [...select.options].some(option => option.value === value) ? value : "";
  }
  filter();
  const button = byId.get(parts.get("open"));
  if (button) open(button);
  else if (dialog.open) dialog.close();
}

function reveal(target) {
  if (!target) return;
  if (target.hidden || target.closest("[hidden]")) { form.reset(); filter(); }
  const table = target.closest("details"), scroll = target.closest(".scroll");
  if (table) table.open = true;
  target.scrollIntoView();
  if (scroll) scroll.scrollLeft = target.offsetLeft - scroll.querySelector("th.head").offsetWidth; // it covers what scrolls under it
}

function open(button) {
  opener = button;
  const cell = known.cells[button.dataset.cell], about = known.details[cell.about];
  const [sign, says] = known.states[cell.state];
  const body = document.getElementById("d-body");
  const kind = "s-" + cell.state.replaceAll(" ", "-");
  body.replaceChildren(
    element("h2", {id: "d-title"}, cell.row),
    element("p", {class: "note"}, `${cell.where} · ${cell.dataset} · ${cell.measure}` + (cell.protocol ? ` · protocol ${cell.protocol}` : "")),
    values(cell),
    element("p", {}, element("span", {class: "badge " + kind}, `${sign} ${cell.state}`), " " + says));
  if (cell.note) body.append(element("p", {}, cell.note));
  if (cell.tuned) body.append(element("p", {}, "† The paper chose parameters of this system on the set that it reports, or on a part of it."));
  if (about.commands.length) body.append(heading("Commands", about.commands.join("\n")), listing(about.commands));
  else body.append(element("h3", {}, "Commands"), element("p", {}, cell.state === "external" ? "None: there is nothing to run." : "None yet."));
  if (about.parameters.length) {
    const list = element("dl", {class: "params"});
    for (const [name, value] of about.parameters) list.append(element("dt", {}, name), element("dd", {}, String(value)));
    body.append(element("h3", {}, "Parameters"), list);
  }
  const twins = twinsOf(button);
  if (twins.length) body.append(element("h3", {}, "Twins: another model, other collections"), element("ul", {class: "twins"}, ...twins.map(text => element("li", {}, text))));
  if (about.history.length) body.append(element("h3", {}, "History"), historyOf(about.history));
  const links = element("p", {class: "links"}, element("a", {class: "link", href: "#open=" + encodeURIComponent(cell.id)}, "link to this cell"));
  for (const page of document.querySelectorAll("header [data-page]")) {
    const name = page.dataset.page; // of the paper, else of a spec
    if (name.startsWith("paper-") || name === Object.fromEntries(about.parameters).spec)
      links.append(element("a", {class: "link", href: page.getAttribute("href")}, `page of ${name}`));
  }
  body.append(links);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  const table = button.closest("details.table");
  table.open = true;
  address();
}

function values(cell) {
  const list = element("dl", {class: "values"});
  for (const [name, value] of [["published", cell.published], ["measured", cell.measured], ["difference", cell.difference]])
    list.append(element("dt", {}, name), element("dd", {}, value || "–"));
  return list;
}

function heading(text, commands) {
  const copy = element("button", {type: "button", class: "copy"}, "copy");
  copy.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(commands); copy.textContent = "copied"; }
    catch { copy.textContent = "select the text to copy it"; }
  });
  return element("h3", {}, text, copy);
}

function listing(commands) {
  const lines = commands.map(line => line.startsWith("#") ? element("span", {class: "remark"}, line + "\n")
    : element("span", {class: "command"}, ...line.split(/(?<= )(?=--)/).map(part => element("span", {}, part)), "\n"));
  return element("pre", {tabindex: "0", "aria-label": "Commands"}, ...lines);
}

function historyOf(entries) {
  const columns = [...new Set(entries.flatMap(entry => entry.map(([name]) => name)))];
  const head = element("tr", {}, ...columns.map(name => element("th", {scope: "col"}, name)));
  const rows = entries.map(entry => Object.fromEntries(entry)).reverse().map(entry => element("tr", {}, ...columns.map(name => element("td", {}, String(entry[name] ?? "")))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

function twinsOf(button) {
  const twins = [...button.closest("tr").querySelectorAll("td.twin")].filter(cell => cell.textContent && cell.title);
  return twins.map(cell => `${cell.title}: ${cell.dataset.measure} ${cell.textContent}`);
}

function move(button, key) {
  const row = button.closest("tr"), rows = [...row.parentElement.children].filter(other => !other.hidden);
  const at = button.parentElement.cellIndex;
  const cells = [...row.querySelectorAll("[data-cell]")].filter(visible);
  let next = null;
  if (key === "ArrowLeft" || key === "ArrowRight") next = cells[cells.indexOf(button) + (key === "ArrowRight" ? 1 : -1)];
  else if (key === "Home") next = cells[0];
  else if (key === "End") next = cells.at(-1);
  else {
    const step = key === "ArrowDown" ? 1 : -1;
    for (let number = rows.indexOf(row) + step; rows[number] && !next; number += step) {
      const below = rows[number].cells[at].querySelector("[data-cell]");
      if (below && visible(below)) next = below;
    }
  }
  if (!next) return;
  button.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  next.scrollIntoView({block: "nearest", inline: "nearest"});
}

document.addEventListener("click", event => {
  const button = event.target.closest("[data-cell]"), key = event.target.closest(".key");
  if (button) {
    for (const other of button.closest("table").querySelectorAll("[data-cell]")) other.tabIndex = -1;
    button.tabIndex = 0;
    open(button);
  } else if (key) {
    form.elements.state.value = key.getAttribute("aria-pressed") === "true" ? "" : key.dataset.state;
    filter();
    address();
  } else if (event.target === dialog) dialog.close();
});
document.addEventListener("keydown", event => {
  const button = event.target.closest("[data-cell]");
  if (button && ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
    event.preventDefault();
    move(button, event.key);
  }
});
dialog.addEventListener("close", () => {
  address();
  if (opener) opener.focus();
});
form.addEventListener("change", () => { filter(); address(); });
form.addEventListener("reset", () => setTimeout(() => { filter(); address(); }));
form.addEventListener("submit", event => event.preventDefault());
window.addEventListener("hashchange", read);
read();
if (!location.hash) filter();
document.documentElement.dataset.ready = "yes";
})();
