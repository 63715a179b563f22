/* What scrolls sideways can be reached by the keyboard, and only that. */
const boxes = document.querySelectorAll(".table-wrapper, .highlight pre");
const look = new ResizeObserver(entries => {
  for (const { target } of entries) {
    const scrolls = target.scrollWidth > target.clientWidth;
    for (const [name, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": target.matches("pre") ? "Code" : "Table" }))
      scrolls ? target.setAttribute(name, value) : target.removeAttribute(name);
  }
});
boxes.forEach(box => look.observe(box));
