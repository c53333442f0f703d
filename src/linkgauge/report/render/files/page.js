"use strict";
// Tables are sorted by a click on a head, or Enter and Space on it: ascending, then descending.
const collator = new Intl.Collator("en", { numeric: true });
function keyOf(row, column) {
  const cell = row.cells[column];
  const key = cell.dataset.k;
  return key === undefined ? cell.textContent.trim() : Number(key);
}
function compare(one, other) {
  if (one === "" || other === "") return (one === "") - (other === "");
  if (typeof one === "number" && typeof other === "number") return one - other;
  return collator.compare(String(one), String(other));
}
function sort(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const descending = heads[column].getAttribute("aria-sort") === "ascending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, at) => ({ row, at, key: keyOf(row, column) }));
  rows.sort((one, other) => {
    // What is missing stays last either way.
    if (one.key === "" || other.key === "") return compare(one.key, other.key) || one.at - other.at;
    const order = compare(one.key, other.key);
    return (descending ? -order : order) || one.at - other.at;
  });
  body.append(...rows.map(({ row }) => row));
}
document.querySelectorAll("table.sortable").forEach((table) => {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => sort(table, column));
  });
});

// A shadow shows on which sides a table goes on; only what can be scrolled takes the keys.
function edges(box) {
  const right = box.scrollWidth - box.clientWidth - box.scrollLeft > 1;
  const down = box.scrollHeight - box.clientHeight - box.scrollTop > 1;
  box.style.setProperty("--right", right ? "-0.9rem" : "0");
  box.style.setProperty("--down", down ? "-0.9rem" : "0");
  box.tabIndex = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight ? 0 : -1;
}
const sizes = new ResizeObserver((found) => found.forEach((one) => edges(one.target)));
document.querySelectorAll(".scroll").forEach((box) => {
  sizes.observe(box);
  box.addEventListener("scroll", () => edges(box), { passive: true });
});

// What a point of a chart or a place of a matrix is.
const tip = document.getElementById("tip");
const said = JSON.parse(document.getElementById("said").textContent);
function told(target) {
  const point = target.closest("[data-tip]");
  if (point) return point.dataset.tip;
  const cell = target.closest("table.heat td");
  if (!cell || !cell.textContent || cell.closest("thead")) return "";
  const head = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  const name = `${cell.parentElement.cells[0].textContent}, ${head.textContent}`;
  const figure = [...cell.childNodes].map((node) => node.textContent).join(" · ");
  return [name, figure, said[cell.dataset.e]].filter(Boolean).join("\n");
}
function show(target, x, y) {
  const text = target instanceof Element ? told(target) : "";
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  const left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4));
  const top = y + 20 + box.height > innerHeight ? y - box.height - 10 : y + 18;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}
function tell(cell) {
  const box = cell.getBoundingClientRect();
  show(cell, box.left, box.bottom - 14);
}
document.addEventListener("pointermove", (event) => show(event.target, event.clientX, event.clientY));
document.addEventListener("pointerdown", (event) => show(event.target, event.clientX, event.clientY));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
document.addEventListener("scroll", () => {
  const at = document.activeElement.closest("table.heat td");
  if (at) tell(at);
  else tip.hidden = true;
}, { capture: true, passive: true });

// The arrow keys go from place to place of a matrix.
document.querySelectorAll("table.heat").forEach((table) => {
  const first = table.querySelector("tbody td:not(:empty)");
  if (first) first.tabIndex = 0;
  table.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell) return;
    const row = table.tBodies[0].rows[cell.parentElement.sectionRowIndex + step[0]];
    const next = row && row.cells[cell.cellIndex + step[1]];
    if (!next || next.tagName !== "TD") return;
    event.preventDefault();
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  table.addEventListener("focusin", (event) => tell(event.target));
  table.addEventListener("focusout", () => { tip.hidden = true; });
});

// Commands are copied.
document.querySelectorAll("button.copy").forEach((button) => {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector(".line").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
});

// Files are kept compressed.
async function download(button) {
  const text = document.getElementById(button.dataset.file).textContent;
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await new Response(stream).blob());
  link.download = button.dataset.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
document.querySelectorAll("button.download").forEach((button) => {
  button.hidden = typeof DecompressionStream === "undefined";
  button.addEventListener("click", () => download(button));
});

// Paper shows what a click would open.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not([open])").forEach((one) => {
    one.open = true;
    one.dataset.opened = "";
  });
});
addEventListener("afterprint", () => {
  document.querySelectorAll("details[data-opened]").forEach((one) => {
    one.open = false;
    delete one.dataset.opened;
  });
});
