/** Short messages at the bottom, and what screen readers say of them: at most one in five seconds. */
import { signal } from "@preact/signals";
import { Icon } from "../parts/icon";

interface Toast {
  key: number;
  text: string;
  tone: "good" | "bad";
  action?: { label: string; run: () => void };
}

const toasts = signal<Toast[]>([]);
const announcement = signal("");
let count = 0;

const SHOWN_MS = { good: 5_000, bad: 12_000 };
/** Of a message with something to press: time to reach it by keyboard. */
const SHOWN_WITH_ACTION_MS = 15_000;
const BETWEEN_ANNOUNCEMENTS_MS = 5_000;

/** Shows a message for some seconds: what was done, or what went wrong with an act that has no place of its own. */
export function toast(text: string, tone: "good" | "bad" = "good", action?: Toast["action"]) {
  const key = ++count;
  toasts.value = [...toasts.value.slice(-2), { key, text, tone, ...(action ? { action } : {}) }];
  announce(text);
  setTimeout(() => remove(key), action ? SHOWN_WITH_ACTION_MS : SHOWN_MS[tone]);
}

function remove(key: number) {
  toasts.value = toasts.value.filter((toast) => toast.key !== key);
}

let lastAnnounced = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Tells screen readers; the last of several messages within five seconds. */
export function announce(text: string) {
  clearTimeout(timer);
  const wait = Math.max(0, lastAnnounced + BETWEEN_ANNOUNCEMENTS_MS - Date.now());
  timer = setTimeout(() => {
    lastAnnounced = Date.now();
    announcement.value = announcement.peek() === text ? `${text}\u00a0` : text;
  }, wait);
}

export function Toasts() {
  return (
    <>
      <p class="visually-hidden" role="status" aria-live="polite">
        {announcement.value}
      </p>
      <section class="toasts" aria-label="Messages">
        {toasts.value.map((toast) => (
          <div key={toast.key} class={`toast toast-${toast.tone}`}>
            <Icon name={toast.tone === "good" ? "check" : "error"} />
            <span>{toast.text}</span>
            {toast.action && (
              <button type="button" class="btn btn-quiet btn-small" onClick={() => toast.action?.run()}>
                {toast.action.label}
              </button>
            )}
            <button
              type="button"
              class="btn btn-quiet btn-icon btn-small"
              aria-label="Close the message"
              onClick={() => remove(toast.key)}
            >
              <Icon name="close" />
            </button>
          </div>
        ))}
      </section>
    </>
  );
}
