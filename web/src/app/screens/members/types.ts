/** Users and invitations, as the API answers them. */
import type { Role } from "../../api/session";

export interface User {
  id: string;
  name: string;
  role: Role;
  operator: boolean;
  createdAt: string;
  lastSeenAt: string | null;
  you: boolean;
}

export interface Invitation {
  id: string;
  role: Role;
  note: string | null;
  createdAt: string;
  expiresAt: string;
  createdBy: string;
  usedAt: string | null;
  usedBy: string | null;
}
