/** The signed-in user of this tab. */
import { computed, signal } from "@preact/signals";

export type Role = "viewer" | "member" | "admin";
export type Scope = "read" | "write" | "admin";

export interface Session {
  user: { id: string; username: string; role: Role; operator: boolean };
  account: { id: string; name: string; plan: string };
  csrfToken: string;
}

/** Null without a session, undefined until the service has answered. */
export const session = signal<Session | null | undefined>(undefined);

/** Whether the session ended while the user was at work: a dialog asks for the password. */
export const isSessionOver = signal(false);

const SCOPES: Record<Role, Scope[]> = {
  viewer: ["read"],
  member: ["read", "write"],
  admin: ["read", "write", "admin"],
};

/** Whether the user's role reaches as far as `scope`. What it does not reach is not shown. */
export const can = (scope: Scope) => SCOPES[session.value?.user.role ?? "viewer"].includes(scope);
export const canWrite = computed(() => can("write"));

let waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];

/** Resolves when the user has signed in again; every request that was answered 401 waits here and is sent again. */
export function signedInAgain(): Promise<void> {
  isSessionOver.value = true;
  return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
}

/** Takes a new session. Another user than before gets a page without anything of the one before. */
export function signedIn(next: Session) {
  const before = session.peek();
  session.value = next;
  isSessionOver.value = false;
  const requests = waiting;
  waiting = [];
  if (before && before.user.id !== next.user.id) return location.reload();
  for (const request of requests) request.resolve();
}
