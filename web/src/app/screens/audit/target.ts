/** Screens of what entries of the audit log name. */
import type { AuditEntry } from "./types";

const SCREENS: Record<string, (id: string) => string> = {
  liveInput: (id) => `/live/${id}`,
  file: (id) => `/files?file=${id}`,
  folder: (id) => `/files/${id}`,
  job: (id) => `/activity?job=${id}`,
  workflow: (id) => `/workflows/${id}`,
  run: (id) => `/runs/${id}`,
  videoStream: (id) => `/streams/${id}`,
  preset: () => "/images/presets",
  webhook: (id) => `/webhooks?id=${id}`,
  delivery: () => "/webhooks/deliveries",
  user: () => "/settings/members",
  invitation: () => "/settings/members/invitations",
  apiKey: () => "/settings/api/keys",
  deliveryKey: () => "/settings/api/delivery-keys",
  playbackKey: () => "/settings/api/playback-keys",
};

/** Actions after which there is no target any more. The target of a share is its folder. */
const ENDS = /^(?!share\.).*\.(deleted|removed|revoked)$/;

/** The path of the screen that shows an entry's target; undefined where there is none. */
export const screenOf = ({ action, target }: Pick<AuditEntry, "action" | "target">): string | undefined =>
  target && !ENDS.test(action) ? SCREENS[target.kind]?.(encodeURIComponent(target.id)) : undefined;
