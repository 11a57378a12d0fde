/** What became of an invitation. */
import type { Invitation } from "./types";

export type InvitationState = "open" | "used" | "expired";

export function stateOf({ usedAt, expiresAt }: Invitation, now: number): InvitationState {
  if (usedAt) return "used";
  return Date.parse(expiresAt) > now ? "open" : "expired";
}
