// Light or dark: as the system says, until the button is pressed.
const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
function showTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : system.matches;
  theme.setAttribute("aria-pressed", dark);
  theme.textContent = dark ? "Light" : "Dark";
  theme.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  return dark;
}
theme.addEventListener("click", () => { document.documentElement.dataset.theme = showTheme() ? "light" : "dark"; showTheme(); });
system.addEventListener("change", showTheme);
showTheme();
