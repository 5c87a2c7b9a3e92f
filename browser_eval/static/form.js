// Behaviour of a native form page (docs/semantics.md): plain buttons, the Review step, the status line.
"use strict";
(() => {
  const form = document.querySelector("form");
  const line = document.getElementById("status");
  const review = form.querySelector("[data-review]");
  const submit = form.querySelector("[type=submit]");

  // A submit button that is disabled for good is not opened by a review.
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

  form.addEventListener("click", (event) => {
    const button = event.target.closest("[type=button]");
    if (!button) return;
    if (button === review) {
      setReviewed(true);
      line.textContent = "Reviewed.";
    } else {
      line.textContent = `${button.value || button.textContent}: done.`;
    }
  });
  form.addEventListener("input", changed);
  form.addEventListener("reset", changed);
})();
