/** The present address: going to another one, and asking before work is lost. */
import { computed, signal } from "@preact/signals";
import { BASE } from "./api/base";

const ROOT = `${BASE}/app`;
const url = signal(new URL(location.href));

/** The path of the present screen below `/app`, as routes are written: "/live/0196…". */
export const path = computed(() => `/${url.value.pathname.slice(ROOT.length).replace(/^\/+|\/+$/g, "")}`);
export const query = computed(() => new URLSearchParams(url.value.search));

/** The address of a screen: `href("/live")`, with `query` values that are not empty. */
export function href(to: string, search?: Record<string, string | number | undefined>): string {
  const given = Object.entries(search ?? {}).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${ROOT}${to === "/" ? "" : to}${text ? `?${text}` : ""}`;
}

/** Returns the question to ask before the screen is left, or undefined when nothing would be lost. */
type LeaveGuard = () => string | undefined;
const guards = new Set<LeaveGuard>();

/** Asks before the present screen is left; returns the end of the guard. */
export function guardLeaving(guard: LeaveGuard): () => void {
  guards.add(guard);
  return () => guards.delete(guard);
}

function mayLeave(): boolean {
  for (const guard of guards) {
    const question = guard();
    if (question && !confirm(question)) return false;
  }
  return true;
}

/** Goes to a screen: `go("/live")` below `/app`. `replace` leaves no step in the history: for filters and tabs of a kind. */
export function go(
  to: string,
  {
    replace = false,
    search,
  }: { replace?: boolean; search?: Record<string, string | number | undefined> } = {},
) {
  visit(new URL(href(to, search), location.href), replace);
}

/** Changes the query of the present screen: filters that a reload and a sent link keep. */
export function setQuery(changes: Record<string, string | number | undefined>) {
  const next = new URL(url.peek());
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") next.searchParams.delete(name);
    else next.searchParams.set(name, String(value));
  }
  history.replaceState(null, "", next);
  url.value = next;
}

function visit(next: URL, replace: boolean) {
  const isSamePath = next.pathname === url.peek().pathname;
  if (!isSamePath && !mayLeave()) return;
  if (replace) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  url.value = next;
  if (!isSamePath) scrollTo(0, 0);
}

/** Follows links to screens and the browser's history; the page of an address is never loaded again. */
export function startRouter() {
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a[href]") as HTMLAnchorElement | null;
    if (!link || link.target || link.hasAttribute("download") || link.getAttribute("href")?.startsWith("#"))
      return;
    const next = new URL(link.href);
    if (next.origin !== location.origin || !(next.pathname === ROOT || next.pathname.startsWith(`${ROOT}/`)))
      return;
    event.preventDefault();
    visit(next, next.href === location.href);
  });
  addEventListener("popstate", () => {
    const next = new URL(location.href);
    if (next.pathname !== url.peek().pathname && !mayLeave()) return history.pushState(null, "", url.peek());
    url.value = next;
  });
  addEventListener("beforeunload", (event) => {
    if ([...guards].some((guard) => guard())) event.preventDefault();
  });
}
