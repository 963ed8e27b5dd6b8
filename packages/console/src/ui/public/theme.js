// Runs before the first paint. It is a separate file because the content security policy forbids inline scripts. See
// theme.ts.
try {
  const theme = localStorage.getItem("holdfast-console-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is not available: the system's theme applies.
}
