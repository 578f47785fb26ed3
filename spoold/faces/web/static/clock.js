// Keeps "how long ago" true while nothing else changes.
const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]];

export function length(seconds) {
  const whole = Math.round(Math.max(0, seconds));
  for (const [size, unit, smaller, sub] of UNITS) {
    if (whole >= size) {
      const rest = Math.floor((whole % size) / smaller);
      return `${Math.floor(whole / size).toLocaleString("en")} ${unit}${rest ? ` ${rest} ${sub}` : ""}`;
    }
  }
  return `${whole} s`;
}

function tick() {
  if (document.hidden || !document.getSelection().isCollapsed) return;
  const now = Date.now();
  for (const one of document.querySelectorAll("time[data-ago]")) {
    const text = length((now - Date.parse(one.dateTime)) / 1000);
    if (one.textContent !== text) one.textContent = text;
  }
}

export function startClock() {
  setInterval(tick, 1000);
}
