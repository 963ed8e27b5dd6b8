/** System, light or dark: kept in this browser. `public/theme.js` sets it before the first paint, so that nothing flashes. */

/** What can be chosen. */
export type Theme = "system" | "light" | "dark";

const KEY = "holdfast-console-theme";

/** The theme that was chosen here before; `system` if none, or if the browser keeps nothing. */
export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

/** Shows it from now on, and keeps it where the browser allows that. */
export function chooseTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Private windows may refuse; it then lasts as long as the page.
  }
}
