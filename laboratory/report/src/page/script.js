"use strict";
// Optional: the page is complete without this script.
(function () {
  const errors = [];
  addEventListener("error", function (event) {
    errors.push(String(event.message));
    document.documentElement.dataset.errors = errors.join("\n");
  });

  // A button switches between light and dark; the default is the system's choice.
  const button = document.getElementById("theme");
  const wanted = new URLSearchParams(location.search).get("theme");
  if (wanted === "light" || wanted === "dark") document.documentElement.dataset.theme = wanted;
  button.hidden = false;
  button.addEventListener("click", function () {
    const root = document.documentElement;
    const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  // Shows a mark's values as soon as the pointer is on it. The marks' titles become their accessible names, so that the
  // browser does not show its slower tooltip too.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  for (const title of document.querySelectorAll("svg.plot title")) {
    const owner = title.parentNode;
    if (owner.classList.contains("mark")) owner.dataset.tip = title.textContent;
    else {
      owner.removeAttribute("aria-labelledby");
      owner.setAttribute("aria-label", title.textContent);
      const description = owner.querySelector("desc");
      if (description) owner.setAttribute("aria-describedby", description.id);
    }
    title.remove();
  }
  addEventListener("pointermove", function (event) {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 10) + "px";
  });

  // A link to a folded part of the page unfolds it.
  function unfold() {
    const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  }
  addEventListener("hashchange", unfold);
  unfold();

  // The embedded run is valid JSON; scripts of readers can check this attribute.
  const run = JSON.parse(document.getElementById("run").textContent);
  document.documentElement.dataset.ready = String(run.schema);
})();
