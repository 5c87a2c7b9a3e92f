// Behaviour of a native form page (docs/semantics.md): plain buttons, the Review step, the status line.
"use strict";
(() => {
  const form = document.querySelector("form");
  const line = document.getElementById("status");
  const review = form.querySelector("[data-review]");
  const submit = form.querySelector("[type=submit]");

  const changed = () => {
    if (!review || submit.disabled) return;
    submit.disabled = true;
    line.textContent = "Changed since the review.";
  };

  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[type=button]");
    if (!button) return;
    if (button === review) {
      submit.disabled = false;
      line.textContent = "Reviewed.";
    } else {
      line.textContent = `${button.textContent}: done.`;
    }
  });
  form.addEventListener("input", changed);
  form.addEventListener("reset", changed);
})();
