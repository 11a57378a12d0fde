/** Entries of the audit log, as the API answers them. */
export interface AuditEntry {
  id: string;
  time: string;
  action: string;
  actor: { kind: string; id: string; name: string };
  target: { kind: string; id: string; name: string | null } | null;
  network: string | null;
  detail: string | null;
}
