// Keys as in k9s. They can be switched off, for those who dictate to their browser.
import { toggleFollow } from "./log.js";
import { remember, remembered } from "./switch.js";

const KEY = "spool-keys";
const NEXT_MS = 1500;
// When `g` was pressed, by the event's own clock: a page that is busy does not lose the second key.
let begun = 0;
// Whether this tab has shown a page of ours before: no page says a referrer.
let been = false;

const rows = () => [...document.querySelectorAll("a[data-row]")].filter((one) => one.offsetParent !== null);
// A box or a button takes no letters; and for a moment after it has closed, the help's own box still has the focus.
const TYPED = "input:not([type=radio], [type=checkbox], [type=submit], [type=button]), textarea, select, [contenteditable]";
const typing = (target) => target.closest(TYPED) !== null;

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement?.closest("tr, li, section")?.querySelector("a[data-row]"));
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[next].focus();
}

function back() {
  const above = document.querySelector("#main .above a");
  if (been) history.back();
  else if (above) above.click();
}

function help(open) {
  const dialog = document.getElementById("help");
  if (open && !dialog.open) dialog.showModal();
  else dialog.close();
}

const DOES = {
  "/": () => (document.querySelector("#main [data-search]") ?? document.getElementById("find")).focus(),
  "?": () => help(true),
  j: () => step(1),
  k: () => step(-1),
  n: () => document.querySelector("a[data-next]")?.click(),
  f: toggleFollow,
  g: (event) => { begun = event.timeStamp; },
  Escape: back,
};

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (remembered(KEY) === "off") return;
  const goes = begun && event.timeStamp - begun < NEXT_MS && /^[a-z]$/.test(event.key);
  begun = 0;
  if (goes) {
    const link = document.querySelector(`header a[data-go="${event.key}"]`);
    if (link) {
      event.preventDefault();
      link.click();
      return;
    }
  }
  const does = DOES[event.key];
  if (does) {
    event.preventDefault();
    does(event);
  }
}

export function startKeys() {
  try {
    been = sessionStorage.getItem("spool-been") === "1";
    sessionStorage.setItem("spool-been", "1");
  } catch { /* a browser may keep nothing */ }
  const button = document.getElementById("help-button");
  button.hidden = false;
  button.addEventListener("click", () => help(true));
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = remembered(KEY) !== "off";
  box.addEventListener("change", () => remember(KEY, box.checked ? "on" : "off"));
  label.append(box, " These keys are on");
  const line = document.createElement("p");
  line.append(label);
  document.querySelector("#help form").before(line);
  document.addEventListener("keydown", pressed);
}
