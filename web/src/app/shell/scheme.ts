/** The colour scheme that the user chose; kept in this browser. */
import { computed, signal } from "@preact/signals";
import { kept } from "./kept";

export type Scheme = "auto" | "light" | "dark";

export const scheme = signal<Scheme>("auto");

const systemIsDark = signal(false);

/** Whether the page is dark now: for what is drawn by scripts and not by styles. */
export const isDark = computed(() =>
  scheme.value === "auto" ? systemIsDark.value : scheme.value === "dark",
);

export function startScheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  systemIsDark.value = system.matches;
  system.addEventListener("change", () => {
    systemIsDark.value = system.matches;
  });
  choose((kept("scheme") as Scheme | null) ?? "auto");
}

export function choose(next: Scheme) {
  scheme.value = next;
  if (next === "auto") document.documentElement.removeAttribute("data-scheme");
  else document.documentElement.setAttribute("data-scheme", next);
  kept("scheme", next === "auto" ? null : next);
}
