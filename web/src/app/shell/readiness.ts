/** Whether the service is well, as `/readyz` says it: asked for after the first screen, and when it says something else. */
import { effect, signal } from "@preact/signals";
import { address } from "../api/base";
import { onChanges } from "../api/changes";
import { offlineSince } from "../api/connection";
import { session } from "../api/session";

export interface Problem {
  name: string;
  reason: string;
  /** The service admits no encoders and viewers because of it. */
  blocking: boolean;
}

export const problems = signal<Problem[]>([]);

const AFTER_MS = 1_500;

export function watchReadiness() {
  const ask = async () => {
    try {
      const response = await fetch(address("/readyz"), { cache: "no-store" });
      problems.value = (await response.json()).reasons ?? [];
    } catch {
      // The connection's probe follows a service that does not answer.
    }
  };
  let timer: ReturnType<typeof setTimeout>;
  effect(() => {
    clearTimeout(timer);
    if (session.value && !offlineSince.value) timer = setTimeout(ask, AFTER_MS);
  });
  onChanges(["service"], ask);
}
