// Runs before the page is painted, so that it does not flash: the choice of this browser, else that of the system.
(function () {
  "use strict";
  var chosen = null;
  try { chosen = localStorage.getItem("spool-theme"); } catch { /* a browser may keep nothing */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
