const root = document.documentElement;
root.classList.add("js");
try {
  const wanted = new URLSearchParams(location.search).get("theme");
  const theme = wanted || localStorage.getItem("holdfast-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
} catch {
  // No storage, no preference.
}
