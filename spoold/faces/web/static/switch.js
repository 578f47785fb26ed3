// The switch between light, dark, and what the system says.
const ORDER = ["system", "light", "dark"];
const KEY = "spool-theme";

export function remembered(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}

export function remember(key, value) {
  try { localStorage.setItem(key, value); } catch { /* a browser may keep nothing */ }
}

export function startTheme() {
  const button = document.getElementById("theme");
  let chosen = ORDER.includes(remembered(KEY)) ? remembered(KEY) : "system";
  const show = () => {
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = `Theme: ${chosen}`;
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length];
    remember(KEY, chosen);
    show();
  });
  show();
}
