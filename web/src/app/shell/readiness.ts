/**
 * Whether the service is well, as `/readyz` says it, to operators `/api/system`: asked for after the first screen, and when it
 * says something else. The latter also knows what passed a moment ago, and the version.
 */
import { effect, signal } from "@preact/signals";
import { address } from "../api/base";
import { onChanges } from "../api/changes";
import { offlineSince } from "../api/connection";
import { isSessionOver, session } from "../api/session";

export interface Problem {
  name: string;
  reason: string;
  /** The service admits no encoders and viewers because of it. */
  blocking: boolean;
}

/** What the status line says. */
export interface Installation {
  version: string;
  newerProgram: { version: string } | null;
  newerSchemaWaits: boolean;
}

export const problems = signal<Problem[]>([]);
/** Null to all but operators. */
export const installation = signal<Installation | null>(null);

const AFTER_MS = 1_500;

async function answer(path: string) {
  const response = await fetch(address(path), { cache: "no-store" });
  if (response.status === 401) isSessionOver.value = true;
  return response.json();
}

async function ask() {
  if (isSessionOver.peek()) return;
  try {
    if (!session.value?.user.operator) {
      installation.value = null;
      problems.value = (await answer("/readyz")).reasons ?? [];
      return;
    }
    const { version, newerProgram, database, reasons } = await answer("/api/system");
    if (isSessionOver.peek()) return;
    problems.value = reasons ?? [];
    if (version) installation.value = { version, newerProgram, newerSchemaWaits: database.newerSchemaWaits };
  } catch {
    // The connection's probe follows a service that does not answer.
  }
}

export function watchReadiness() {
  let timer: ReturnType<typeof setTimeout>;
  effect(() => {
    clearTimeout(timer);
    if (session.value && !isSessionOver.value && !offlineSince.value) timer = setTimeout(ask, AFTER_MS);
  });
  onChanges(["service", "system"], ask);
}
