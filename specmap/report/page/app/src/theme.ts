// Light, dark, or what the system says. The choice is kept where the browser allows it.

export type Theme = "auto" | "light" | "dark";

const KEY = "specmap-theme";

export function storedTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "auto";
  } catch {
    return "auto"; // a page opened from disk may have no storage
  }
}

export function applyTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === "auto") delete root.dataset["theme"];
  else root.dataset["theme"] = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // the choice then holds for this view only
  }
  dispatchEvent(new Event("specmap-theme")); // canvases read their colours anew
}
