// Follows the log of a task, and searches in what is shown of it.
const EVERY_MS = 1000;
const LINES_MOST = 800;
let following = true;
let asking = false;

const pane = () => document.querySelector("pre.log[data-follow]");
const atEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 40;

async function poll() {
  const log = pane();
  if (!log || asking || document.hidden || !following || log.dataset.ended === "1") return;
  if (!document.getSelection().isCollapsed && log.contains(document.getSelection().anchorNode)) return;
  asking = true;
  try {
    const answer = await fetch(`${log.dataset.follow}&at=${log.dataset.end}`, {
      headers: { "X-Spool-Part": "1" }, credentials: "same-origin", redirect: "error",
    });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("new");
    if (!fresh || log !== pane()) return;
    const stick = atEnd(log);
    log.append(...[...fresh.childNodes].map((one) => document.importNode(one, true)));
    const lines = log.querySelectorAll(".line");
    for (let extra = lines.length - LINES_MOST, at = 0; at < extra; at += 1) {
      lines[at].nextSibling?.remove();
      lines[at].remove();
    }
    log.dataset.end = fresh.dataset.end;
    log.dataset.ended = fresh.dataset.ended;
    if (stick) log.scrollTop = log.scrollHeight;
    if (fresh.childElementCount) find(false);
  } catch {
    // The stream of updates says that the server is gone.
  } finally {
    asking = false;
  }
}

function find(move) {
  const field = document.getElementById("log-search");
  const found = document.getElementById("log-found");
  const log = pane();
  if (!field || !found || !log) return;
  const text = field.value.toLowerCase();
  let hits = 0;
  let first = null;
  for (const line of log.querySelectorAll(".line")) {
    const hit = text !== "" && line.textContent.toLowerCase().includes(text);
    line.classList.toggle("hit", hit);
    if (hit) {
      hits += 1;
      first ??= line;
    }
  }
  found.hidden = text === "";
  found.textContent = hits === 1 ? "1 line" : `${hits} lines`;
  if (move && first) log.scrollTop = first.offsetTop - log.offsetTop;
}

export function toggleFollow() {
  const button = document.getElementById("follow");
  if (!button) return;
  following = !following;
  button.setAttribute("aria-pressed", String(following));
  const log = pane();
  if (following && log) log.scrollTop = log.scrollHeight;
}

// What the server sends is without scripts: after each change, show again what only scripts can do.
export function lookAtLogs() {
  const log = pane();
  if (!log) return;
  for (const one of document.querySelectorAll(".logbar .js")) {
    if (one.id !== "log-found") one.hidden = false;
  }
  if (!log.dataset.seen) {
    log.dataset.seen = "1";
    log.scrollTop = log.scrollHeight;
  }
}

export function startLogs() {
  lookAtLogs();
  document.addEventListener("click", (event) => {
    if (event.target.id === "follow") toggleFollow();
  });
  document.addEventListener("input", (event) => {
    if (event.target.id === "log-search") find(true);
  });
  setInterval(poll, EVERY_MS);
}
