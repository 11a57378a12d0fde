/** The colour scheme that the user chose; kept in this browser. */
import { signal } from "@preact/signals";
import { kept } from "./kept";

export type Scheme = "auto" | "light" | "dark";

export const scheme = signal<Scheme>("auto");

export function startScheme() {
  choose((kept("scheme") as Scheme | null) ?? "auto");
}

export function choose(next: Scheme) {
  scheme.value = next;
  if (next === "auto") document.documentElement.removeAttribute("data-scheme");
  else document.documentElement.setAttribute("data-scheme", next);
  kept("scheme", next === "auto" ? null : next);
}
