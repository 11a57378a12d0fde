/** The last requests of this tab as `curl` commands, for "Show as curl". Kept in memory only, without credentials. */
import { signal } from "@preact/signals";

export interface Call {
  method: string;
  path: string;
  body?: unknown;
}

const KEPT = 8;

/** Asked again at each key while one edits, and change nothing. */
const QUESTIONS = /^\/api\/workflows\/(lint|dry-run)$/;

/** What the user did last, newest first. */
export const changesMade = signal<Call[]>([]);
/** What the present screen has read, newest first. */
export const reads = signal<Call[]>([]);

export function recordCall(call: Call) {
  if (call.path.startsWith("/api/session")) return;
  const isRead = call.method === "GET" || QUESTIONS.test(call.path);
  const list = isRead ? reads : changesMade;
  const others = list.peek().filter((other) => !isRead || other.path !== call.path);
  list.value = [call, ...others].slice(0, KEPT);
}

const SECRET = /password|secret|token$|^code$|streamKey/i;

/** The command that sends the same request with an API key in `$KEY`. */
export function asCurl(call: Call, origin: string): string {
  const parts = [`curl -s${call.method === "GET" ? "" : ` -X ${call.method}`} ${quoted(origin + call.path)}`];
  parts.push(`-H "Authorization: Bearer $KEY"`);
  if (call.body instanceof FormData) {
    for (const [name, value] of call.body)
      parts.push(`-F ${quoted(typeof value === "string" ? `${name}=${value}` : `${name}=@${value.name}`)}`);
  } else if (call.body instanceof Blob) {
    parts.push("--data-binary @FILE");
  } else if (call.body !== undefined) {
    parts.push(
      `--json ${quoted(JSON.stringify(call.body, (key, value) => (SECRET.test(key) && value ? "…" : value)))}`,
    );
  }
  return parts.join(" \\\n  ");
}

/** A word of a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
