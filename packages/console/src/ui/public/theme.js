// Before the first paint, and a file of its own since the policy of the page allows no inline script. See theme.ts.
try {
  const theme = localStorage.getItem("holdfast-console-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Nothing is kept here: the system decides.
}
