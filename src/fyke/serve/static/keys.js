// "/" goes to the search box, as on many search pages. Nothing else here needs script.
"use strict";
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const box = document.getElementById("q");
  if (!box) return;
  event.preventDefault();
  box.focus();
  box.select();
});
