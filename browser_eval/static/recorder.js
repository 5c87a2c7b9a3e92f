// Runs in an isolated world of every page: the page's own scripts can neither see nor change anything here.
// It tells the harness, through a binding that only this world has, what the user activated and edited
// (capture listeners on window come before the page's), and lets the harness read values and place notices.
"use strict";
(() => {
  if (window !== window.top || globalThis.advsim) return;

  const tell = (message) => globalThis.__advsim(JSON.stringify(message));
  const fold = (text) => (text || "").trim().replace(/\s+/g, " ");
  const noticeKeys = new WeakMap();
  const FIELDS = "input, select, textarea, [contenteditable]:not([contenteditable=false])";
  const NO_FIELD = new Set(["submit", "reset", "button", "image"]);
  const WIDGETS =
    "[role=switch], [role=checkbox], [role=radiogroup], [role=listbox], [role=slider], [role=spinbutton], " +
    "[role=combobox], [role=textbox]";
  const BUTTONS =
    "button, input[type=submit], input[type=reset], input[type=button], input[type=image], a[href], summary, " +
    "[role=button], [role=link], [role=menuitem], [role=tab]";

  // A radiogroup around the browser's own radios is a fieldset by another name: the radios speak for themselves.
  const isWidget = (el) => !isField(el) && !el.querySelector("input[type=radio]");

  const isField = (el) =>
    el.matches(FIELDS) && !(el.localName === "input" && NO_FIELD.has(el.type));

  const labelled = (el) => {
    const by = el.getAttribute("aria-labelledby");
    if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent).join(" ");
    if (el.getAttribute("aria-label")) return el.getAttribute("aria-label");
    if (el.labels?.length) {
      // A label that wraps its own field holds the field's text too; that text is no name.
      const copy = el.labels[0].cloneNode(true);
      copy.querySelectorAll("input, select, textarea, button").forEach((inner) => inner.remove());
      return copy.textContent;
    }
    return "";
  };

  const nameOf = (el) =>
    fold(
      labelled(el) ||
        (el.matches("input[type=submit], input[type=reset], input[type=button]") ? el.value : "") ||
        el.alt ||
        (el.matches(BUTTONS) || el.matches("[role=option], [role=radio]") ? el.textContent : "") ||
        el.title ||
        el.placeholder ||
        el.textContent
    );

  // A control's key: its name, else its id, else its accessible name.
  const keyOf = (el) => {
    if (noticeKeys.has(el)) return noticeKeys.get(el);
    const key = el.getAttribute("name") || el.id || nameOf(el);
    if (el.localName === "input" && el.type === "checkbox" && el.name) {
      // Boxes that share a name are told apart by their values.
      const group = document.querySelectorAll(`input[type=checkbox][name="${CSS.escape(el.name)}"]`);
      if (group.length > 1) return `${key}=${el.value}`;
    }
    return key;
  };

  // The controls that have one of these keys, each with its key.
  const controls = (wanted) => {
    const names = new Set(wanted);
    const all = document.querySelectorAll(`${FIELDS}, ${WIDGETS}, ${BUTTONS}, [id], [name]`);
    return [...all].flatMap((el) => (names.has(keyOf(el)) ? [[el, keyOf(el)]] : []));
  };

  // Every key that something to fill in or to press has.
  const keys = () => {
    const all = document.querySelectorAll(`${FIELDS}, ${WIDGETS}, ${BUTTONS}`);
    return [...new Set([...all].filter((el) => el.type !== "hidden").map(keyOf).filter(Boolean))];
  };

  // The page as it stands, and the files that it has loaded.
  const source = () => document.documentElement.outerHTML;
  const loaded = () => performance.getEntriesByType("resource").map((entry) => entry.name);

  const widgetValue = (el) => {
    const role = el.getAttribute("role");
    if (role === "switch" || role === "checkbox") return el.getAttribute("aria-checked") === "true" ? "on" : "";
    if (role === "radiogroup") {
      const chosen = el.querySelector("[role=radio][aria-checked=true]");
      return chosen ? nameOf(chosen) : "";
    }
    if (role === "listbox") {
      return [...el.querySelectorAll("[role=option][aria-selected=true]")].map(nameOf).join(", ");
    }
    if (role === "slider" || role === "spinbutton") return el.getAttribute("aria-valuenow") || "";
    return el.value ?? fold(el.textContent);
  };

  // [value as submitted, value as seen]: a choice is submitted by its value and seen by its name.
  const valueOf = (el) => {
    if (el.localName === "select") {
      const chosen = [...el.selectedOptions];
      return [chosen.map((o) => o.value).join(", "), chosen.map((o) => fold(o.label || o.text)).join(", ")];
    }
    if (el.localName === "input" && el.type === "checkbox") return [el.checked ? el.value : "", el.checked ? "on" : ""];
    if ("value" in el) return [el.value, el.value];
    return [el.innerText, el.innerText];
  };

  const values = () => {
    const found = {};
    for (const el of document.querySelectorAll(FIELDS)) {
      if (!isField(el) || el.getAttribute("role") === "combobox" && !("value" in el)) continue;
      const key = keyOf(el);
      if (!key) continue;
      if (el.localName === "input" && el.type === "radio") {
        if (el.checked) found[key] = [el.value, nameOf(el) || el.value];
        else found[key] ??= ["", ""];
      } else if (!(key in found)) {
        found[key] = valueOf(el);
      }
    }
    for (const el of document.querySelectorAll(WIDGETS)) {
      const key = keyOf(el);
      if (key && !(key in found) && isWidget(el)) found[key] = [widgetValue(el), widgetValue(el)];
    }
    return found;
  };

  // Widgets made by script fire no input event of the browser's: their state before and after is compared.
  let touched = null;
  const touch = (event) => {
    const el = event.isTrusted && event.target.closest?.(WIDGETS);
    if (el && isWidget(el) && !touched) touched = [el, widgetValue(el)];
  };
  const flush = () => {
    if (!touched) return;
    const [el, before] = touched;
    touched = null;
    if (widgetValue(el) !== before) tell(["edit", keyOf(el)]);
  };

  const edited = (event) => {
    if (event.isTrusted && event.target.nodeType === 1 && isField(event.target)) tell(["edit", keyOf(event.target)]);
  };

  const clicked = (event) => {
    touch(event);
    if (!event.isTrusted) return;
    let el = event.target.closest?.(BUTTONS);
    if (!el && event.target.closest) {
      // A page without semantics: what shows a hand and has a name of its own was made to be clicked.
      const plain = event.target.closest("[id], [name]");
      if (plain && !plain.closest(`${FIELDS}, ${WIDGETS}, label`) && getComputedStyle(plain).cursor === "pointer") {
        el = plain;
      }
    }
    // The browser itself holds back a form that breaks its own rules: such a click submits nothing.
    const held = el?.form && el.type === "submit" && !el.form.noValidate && !el.formNoValidate && el.form.matches(":invalid");
    if (el && !el.disabled) tell(["activate", keyOf(el), held ? null : values()]);
  };

  // A button made of something else is pressed by keys that its page listens to: no click comes of them.
  const MADE = "[role=button], [role=link], [role=menuitem], [role=tab]";
  const pressed = (event) => {
    touch(event);
    if (!event.isTrusted || (event.key !== "Enter" && event.key !== " ")) return;
    const el = event.target.closest?.(MADE);
    if (el && !el.matches("button, input, a[href], summary")) tell(["activate", keyOf(el), values()]);
  };

  const opts = { capture: true, passive: true };
  window.addEventListener("click", clicked, opts);
  window.addEventListener("keydown", pressed, opts);
  window.addEventListener("input", edited, opts);
  window.addEventListener("submit", () => tell(["submit", "", values()]), opts);

  const make = (tag, text) => {
    const el = document.createElement(tag);
    if (text) el.textContent = text;
    return el;
  };

  let firstDialog = null;

  // A notice is text: it is only ever assigned to textContent.
  const notice = (kind, text, label) => {
    const box = make("div");
    box.setAttribute("role", kind);
    box.setAttribute("aria-label", "Notice");
    box.append(make("p", text));
    if (label !== null) {
      const button = make("button", label);
      button.type = "button";
      noticeKeys.set(button, `notice:${fold(label)}`);
      box.append(button);
    }
    const form = document.querySelector("form");
    if (kind === "banner") document.body.prepend(box);
    else if (kind === "alert" && form) form.before(box);
    else if (kind === "alert" && firstDialog?.isConnected) firstDialog.before(box);
    else document.body.append(box);
    if (kind === "dialog") firstDialog ??= box;
  };

  // Scroll an element into sight. Not by scrollIntoView, which also moves the place from which Tab goes on.
  const reveal = (el) => {
    const delta = (start, end, low, high) =>
      start >= low && end <= high ? 0 : (start + end - low - high) / 2;
    for (let box = el.parentElement; box && box !== document.scrollingElement; box = box.parentElement) {
      const style = getComputedStyle(box);
      if (!/auto|scroll|hidden/.test(style.overflow + style.overflowX + style.overflowY)) continue;
      const a = el.getBoundingClientRect(), b = box.getBoundingClientRect();
      box.scrollTop += delta(a.top, a.bottom, b.top, b.bottom);
      box.scrollLeft += delta(a.left, a.right, b.left, b.right);
    }
    const r = el.getBoundingClientRect();
    const left = delta(r.left, r.right, 0, innerWidth), top = delta(r.top, r.bottom, 0, innerHeight);
    if (left || top) window.scrollBy({ left, top, behavior: "instant" });
  };

  // Where a click meets this element and no control or label inside it; else who is in the way.
  const spot = (el, atStart) => {
    reveal(el);
    const rects = [...el.getClientRects()].filter((r) => r.width > 0 && r.height > 0);
    if (!rects.length) return { error: "has no visible area" };
    const control = (hit) =>
      hit.closest("a[href], button, input, select, textarea, label, option, [role=button], [role=radio], [role=option]");
    let blocked = null;
    for (const r of rects) {
      const left = Math.max(r.left, 0), top = Math.max(r.top, 0);
      const right = Math.min(r.right, innerWidth), bottom = Math.min(r.bottom, innerHeight);
      const xs = atStart ? [0.04, 0.5] : [0.5, 0.25, 0.75, 0.02, 0.98];
      for (const fy of [0.5, 0.25, 0.75, 0.04, 0.96]) {
        for (const fx of xs) {
          const x = left + (right - left) * fx, y = top + (bottom - top) * fy;
          const hit = document.elementFromPoint(x, y);
          if (!hit) continue;
          const label = hit.closest("label");
          if (hit === el || (label && label.control === el)) return { x, y };
          if (el.contains(hit)) {
            const inner = control(hit);
            if (!inner || inner === el || inner.contains(el)) return { x, y };
          } else {
            blocked ??= hit;
          }
        }
      }
    }
    return { error: blocked ? "is covered by another element" : "has no point that a click could reach" };
  };

  // The page is at rest when a frame passes in which nothing changed.
  const rest = (limit) =>
    new Promise((resolve) => {
      let changed = false;
      const watch = new MutationObserver(() => (changed = true));
      watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
      const began = performance.now();
      const look = () => {
        if (changed && performance.now() - began < limit) {
          changed = false;
          setTimeout(look, 20);
        } else {
          watch.disconnect();
          resolve();
        }
      };
      setTimeout(look, 20);
    });

  const hasFocus = () => document.activeElement !== null && document.activeElement !== document.body;

  globalThis.advsim = { controls, hasFocus, keys, loaded, source, values, notice, spot, flush, rest };
})();
