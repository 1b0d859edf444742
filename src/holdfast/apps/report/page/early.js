const root = document.documentElement;
root.classList.add("js");
try {
  const theme = new URLSearchParams(location.search).get("theme") || localStorage.getItem("holdfast-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
} catch {
  // No storage, no preference.
}
