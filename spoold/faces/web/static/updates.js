// Hears that something changed, and asks for the page's own address again: once a second at most.
import { morph } from "./morph.js";

const EVERY_MS = 1000;
const SAY_MS = 10000;
// Some parts of a page are answers that the server keeps for seconds: they may be old when the version is not.
const ANYHOW_MS = 10000;
const PARTS = ["state", "main", "foot"];
let shown = 0;
let wanted = 0;
let tag = "";
let asking = false;
let timer = 0;
let saidAt = 0;
let askedAt = Date.now();
let after = () => {};

function say(text, bad = false) {
  const live = document.getElementById("live");
  if (live) live.textContent = text;
  document.body.classList.toggle("lost-touch", bad);
}

function announce(before) {
  const now = telling();
  if (now !== before && Date.now() - saidAt > SAY_MS) {
    saidAt = Date.now();
    document.getElementById("told").textContent = now;
  }
}

function telling() {
  const text = document.querySelector("#main .lead")?.cloneNode(true);
  for (const one of text?.querySelectorAll("time") ?? []) one.remove();
  return text ? text.textContent.replace(/\s+/g, " ").trim() : "";
}

// While somebody selects text, or types into a form of the page, it stays as it is.
function busy() {
  const chosen = document.getSelection();
  const main = document.getElementById("main");
  return !chosen.isCollapsed && main.contains(chosen.anchorNode);
}

async function refresh() {
  timer = 0;
  if (asking || document.hidden || wanted === shown) return;
  if (busy()) {
    schedule();
    return;
  }
  asking = true;
  askedAt = Date.now();
  const version = wanted;
  try {
    const headers = { "X-Spool-Part": "1" };
    if (tag) headers["If-None-Match"] = tag;
    const answer = await fetch(location.href, { headers, credentials: "same-origin", redirect: "error" });
    if (answer.status === 401) {
      say("This browser is not let in any more: open a new URL from the terminal of spool web.", true);
      shown = wanted;
      return;
    }
    if (answer.status !== 304) {
      tag = answer.headers.get("ETag") ?? "";
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const before = telling();
      for (const id of PARTS) {
        const [here, there] = [document.getElementById(id), page.getElementById(id)];
        if (here && there) morph(here, there);
      }
      after();
      announce(before);
    }
    // A part of the page is still being read: ask once more, whatever the version.
    shown = document.getElementById("state").hasAttribute("data-again") ? -1 : version;
    say("Live.");
  } catch {
    say("The server does not answer; trying again.", true);
  } finally {
    asking = false;
    if (wanted !== shown) schedule();
  }
}

function schedule() {
  if (!timer) timer = setTimeout(refresh, EVERY_MS);
}

function listen(pauseMs) {
  const source = new EventSource("/updates");
  source.onopen = () => say("Live.");
  source.onmessage = (event) => {
    wanted = Number(event.data);
    if (wanted !== shown) schedule();
  };
  source.onerror = () => {
    say("The server does not answer; trying again.", true);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(Math.min(2 * pauseMs, 60000)), pauseMs);
  };
}

export function startUpdates(whenChanged) {
  // A form that says what will happen must not change under the hand that confirms it.
  if (location.pathname.startsWith("/act/")) return;
  after = whenChanged;
  shown = Number(document.getElementById("state")?.dataset.version ?? 0);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && wanted !== shown) schedule();
  });
  if (document.getElementById("state").hasAttribute("data-again")) {
    wanted = shown;
    shown = -1;
    schedule();
  }
  setInterval(() => {
    if (document.hidden || Date.now() - askedAt < ANYHOW_MS || wanted === 0) return;
    shown = -1;
    schedule();
  }, 1000);
  listen(2000);
}
