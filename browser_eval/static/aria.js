// Behaviour of the ARIA skin: list boxes, switches and radio groups made of plain elements. Each keeps its value in a
// hidden input, which is what the form submits. Plain buttons, Review and the status line are as in form.js.
"use strict";
(() => {
  const form = document.querySelector("form");
  const line = document.getElementById("status");
  const submit = form.querySelector("[type=submit]");
  const closed = submit.hasAttribute("data-closed");
  let reviewed = false;

  const setReviewed = (now) => {
    reviewed = now;
    if (!closed) submit.disabled = !now;
  };
  const changed = () => {
    if (!reviewed) return;
    setReviewed(false);
    line.textContent = "Changed since the review.";
  };

  const store = (widget) => document.getElementById(`${widget.id}-value`);
  const parts = (widget) => [...widget.querySelectorAll("[role=option], [role=radio]")];
  const mark = (widget) => (widget.getAttribute("role") === "listbox" ? "aria-selected" : "aria-checked");
  const off = (widget) => widget.getAttribute("aria-disabled") === "true";

  const show = (widget) => {
    const value = store(widget).value;
    if (widget.getAttribute("role") === "switch") {
      widget.setAttribute("aria-checked", String(value === "on"));
      return;
    }
    const all = parts(widget);
    const chosen = all.find((part) => part.dataset.value === value);
    for (const part of all) part.setAttribute(mark(widget), String(part === chosen));
    if (widget.getAttribute("role") === "radiogroup" && !off(widget)) {
      for (const part of all) part.tabIndex = part === (chosen || all[0]) ? 0 : -1;
    }
  };

  const set = (widget, value) => {
    const input = store(widget);
    if (off(widget) || input.value === value) return;
    input.value = value;
    show(widget);
    changed();
  };

  for (const widget of form.querySelectorAll("[role=listbox], [role=switch], [role=radiogroup]")) {
    const first = store(widget).value;
    show(widget);
    form.addEventListener("reset", () => {
      store(widget).value = first;
      show(widget);
    });
    if (widget.getAttribute("role") === "switch") {
      const flip = () => set(widget, store(widget).value === "on" ? "" : "on");
      widget.addEventListener("click", flip);
      widget.addEventListener("keydown", (event) => {
        if (event.key !== " ") return;
        event.preventDefault();
        flip();
      });
      continue;
    }
    widget.addEventListener("click", (event) => {
      const part = event.target.closest("[role=option], [role=radio]");
      if (part) set(widget, part.dataset.value);
    });
    widget.addEventListener("keydown", (event) => {
      const all = parts(widget);
      const radios = widget.getAttribute("role") === "radiogroup";
      const at = radios
        ? all.indexOf(document.activeElement)
        : all.findIndex((part) => part.dataset.value === store(widget).value);
      const last = all.length - 1;
      let to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
      if (radios) to = { ...{ ArrowRight: at + 1, ArrowLeft: at - 1, " ": at } }[event.key] ?? to;
      if (to === undefined) return;
      event.preventDefault();
      to = radios ? (to + all.length) % all.length : Math.max(0, Math.min(to, last));
      set(widget, all[to].dataset.value);
      if (radios && !off(widget)) all[to].focus();
    });
  }

  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[type=button]");
    if (!button) return;
    if (button.hasAttribute("data-review")) {
      setReviewed(true);
      line.textContent = "Reviewed.";
    } else {
      line.textContent = `${button.textContent}: done.`;
    }
  });
  form.addEventListener("input", changed);
  form.addEventListener("reset", changed);
})();
