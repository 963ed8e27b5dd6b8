/**
 * The theme (system, light or dark), stored in this browser. `public/theme.js` applies it before the first paint to
 * avoid a flash.
 */

/** The available themes. */
export type Theme = "system" | "light" | "dark";

const KEY = "holdfast-console-theme";

/** The stored theme; `system` if there is none, or if storage is not available. */
export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

/** Applies a theme, and stores it if possible. */
export function chooseTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Private windows may refuse storage; the theme then lasts until the page is closed.
  }
}
