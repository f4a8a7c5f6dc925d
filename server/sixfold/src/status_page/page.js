// Keeps the page up to date. The server sends text that is ready to be shown; this script only puts it into place, always as text.
"use strict";
const PERIOD = 3000;
let paused = false;

const put = (node, text) => {
  // An assignment without need would lose a selection, and be read aloud again.
  if (node.textContent !== text) node.textContent = text;
};

const all = (name, apply) => {
  for (const node of document.querySelectorAll(`[data-${name}]`)) apply(node, node.dataset[name]);
};

const fill = (body, rows) => {
  const heads = body.parentNode.tHead.rows[0].cells;
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, index) => {
    const line = body.rows[index] || body.insertRow();
    if (line.cells.length !== row.cells.length) {
      const cells = row.cells.map((_, place) => document.createElement(place ? "td" : "th"));
      cells[0].scope = "row";
      // Where the heads of a table do not fit, the style sheet puts these before the cells.
      cells.slice(1).forEach((cell, place) => { cell.dataset.label = heads[place + 1].textContent; });
      line.replaceChildren(...cells);
    }
    line.className = row.tone;
    row.cells.forEach((text, place) => put(line.cells[place], text));
    if (row.cells.length === 1) line.cells[0].colSpan = heads.length;
    else line.cells[0].removeAttribute("colspan");
  });
};

const update = async () => {
  const lost = document.getElementById("lost");
  try {
    const answer = await fetch("status.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const news = await answer.json();
    all("field", (node, name) => put(node, news.fields[name]));
    all("tone", (node, name) => { node.className = news.tones[name]; });
    all("rows", (node, name) => fill(node, news.rows[name]));
    all("line", (node, name) => node.setAttribute("points", news.lines[name]));
    lost.hidden = true;
  } catch {
    lost.hidden = false;
  }
};

const tick = async () => {
  if (!paused && !document.hidden) await update();
  setTimeout(tick, PERIOD);
};

const button = document.getElementById("pause");
button.hidden = false;
button.addEventListener("click", () => {
  paused = !paused;
  button.setAttribute("aria-pressed", paused);
  if (!paused) update();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) update(); });
setTimeout(tick, PERIOD);
