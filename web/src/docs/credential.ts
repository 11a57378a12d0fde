/**
 * The credential that calls from this page are sent with: the dashboard's session of this browser, or a key that was pasted.
 * A key is in its field and nowhere else: it is gone with the page.
 */
import { element } from "./element";

type Kind = "session" | "key" | "none";

interface Session {
  user: { username: string; role: string };
  csrfToken: string;
}

let kind: Kind = "session";
const key = element("input", {
  class: "input",
  id: "api-key",
  type: "password",
  autocomplete: "off",
  spellcheck: "false",
  placeholder: "svc_…",
}) as HTMLInputElement;
/** What the credential is, in words, wherever it is shown. */
const followers = new Set<HTMLElement>();
let words = "with your dashboard session";

export function credentialView(): HTMLElement {
  const status = element("span", { class: "credential-status" });
  const choice = (value: Kind, label: string, ...more: HTMLElement[]) => {
    const radio = element("input", { type: "radio", name: "credential", value }) as HTMLInputElement;
    radio.checked = value === kind;
    radio.addEventListener("change", () => choose(value));
    return element("div", { class: "credential" }, element("label", {}, radio, ` ${label}`), ...more);
  };
  key.setAttribute("aria-label", "API key");
  key.addEventListener("input", () => {
    const radio = document.querySelector<HTMLInputElement>("input[name=credential][value=key]");
    if (radio) radio.checked = true;
    choose("key");
  });
  follow(status);
  return element(
    "fieldset",
    { class: "credentials", id: "credential" },
    element("legend", {}, "Calls from this page"),
    element(
      "p",
      { class: "prose" },
      "“Try it” below each operation sends real calls, which change what is stored here. Choose what they are sent with:",
    ),
    choice("session", "your dashboard session"),
    choice("key", "an API key, which is not stored", key),
    choice("none", "no credential"),
    element("p", { class: "prose" }, "Calls are sent ", status, "."),
  );
}

/** A line that says which credential is in force. */
export function credentialLine(): HTMLElement {
  const status = element("span", {});
  follow(status);
  return element(
    "p",
    { class: "sent-with" },
    "Sent ",
    status,
    ". ",
    element("a", { href: "#credential" }, "Change"),
  );
}

function choose(next: Kind): void {
  kind = next;
  if (kind === "key")
    say(key.value.trim() ? "with the pasted API key" : "with an API key, once it is pasted");
  else if (kind === "none") say("without a credential");
  else void askSession();
}

function say(next: string): void {
  words = next;
  for (const status of followers) status.textContent = words;
}

function follow(status: HTMLElement): void {
  status.textContent = words;
  followers.add(status);
}

/** Asks who is signed in; shown beside what is tried, and asked again for each change, since another tab may have signed in again. */
export async function askSession(): Promise<Session | null> {
  const answer = await fetch("/api/session", { credentials: "same-origin" });
  const session = answer.ok ? ((await answer.json()) as Session) : null;
  if (kind === "session") {
    say(
      session
        ? `with your dashboard session, as ${session.user.username} (${session.user.role})`
        : "without a credential: you are not signed in to the dashboard at /app",
    );
  }
  return session;
}

/** How a call is sent; a key or none leaves the cookies out, so that the answer is to it alone. */
export async function withCredential(method: string, headers: Headers): Promise<RequestInit> {
  if (kind === "session") {
    const isChange = method !== "GET" && method !== "HEAD";
    const session = isChange ? await askSession() : null;
    if (session) headers.set("x-csrf-token", session.csrfToken);
    return { headers, credentials: "same-origin" };
  }
  if (kind === "key") headers.set("authorization", `Bearer ${key.value.trim()}`);
  return { headers, credentials: "omit" };
}
