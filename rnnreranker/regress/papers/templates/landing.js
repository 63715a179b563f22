"use strict";
(() => {
const tip = document.getElementById("tip");
const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};

function marks(line) {
  return [...line.children];
}

function next(mark, key) {
  const lines = [...mark.closest(".marks").children];
  const all = marks(mark.parentElement).filter(one => one.href);
  if (key === "Home") return all[0];
  if (key === "End") return all.at(-1);
  const [down, right] = moves[key];
  let row = lines.indexOf(mark.parentElement) + down, column = marks(mark.parentElement).indexOf(mark) + right;
  while (lines[row]?.children[column] && !lines[row].children[column].href) { row += down; column += right; }
  return lines[row]?.children[column];
}

function say(mark) {
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.getAttribute("aria-label");
  const box = mark.getBoundingClientRect(), map = tip.parentElement.getBoundingClientRect();
  tip.style.top = `${box.bottom - map.top + 6}px`;
  tip.style.left = `${Math.max(0, Math.min(box.left - map.left - 12, map.width - tip.offsetWidth))}px`;
}

function only(state) {
  for (const key of document.querySelectorAll(".key")) key.setAttribute("aria-pressed", key.dataset.state === state);
  const shown = state && "s-" + state.replaceAll(" ", "-");
  for (const mark of document.querySelectorAll(".row a")) mark.classList.toggle("off", Boolean(shown) && !mark.classList.contains(shown));
}

for (const mark of document.querySelectorAll(".marks a")) mark.tabIndex = -1;
for (const table of document.querySelectorAll(".marks")) table.querySelector("a").tabIndex = 0;
document.addEventListener("keydown", event => {
  const mark = event.target.closest(".row a");
  if (event.key === "Escape") say(null);
  if (!mark || !(event.key in moves || event.key === "Home" || event.key === "End")) return;
  event.preventDefault();
  const other = next(mark, event.key);
  if (!other) return;
  mark.tabIndex = -1;
  other.tabIndex = 0;
  other.focus();
});
document.addEventListener("click", event => {
  const key = event.target.closest(".key");
  if (key) only(key.getAttribute("aria-pressed") === "true" ? "" : key.dataset.state);
});
for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, event => say(event.target.closest(".row a")));
document.addEventListener("focusout", () => say(null));
document.documentElement.dataset.ready = "yes";
})();
