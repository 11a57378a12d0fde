/** When a version was saved and by whom, as far as the service says it: versions have a time, the audit log has names. */
import { api } from "../../api/client";
import { can } from "../../api/session";
import type { AuditEntry } from "../audit/types";
import type { Workflow, WorkflowVersion } from "../shared/workflow_types";

export interface Saving {
  at: string;
  by?: AuditEntry["actor"] | undefined;
}

/** An entry is written right after the change. */
const NOTED_WITHIN_MS = 10_000;

export async function savingOf({ id, version, updatedAt }: Workflow): Promise<Saving> {
  const { versions } = await api.get<{ versions: WorkflowVersion[] }>(`/api/workflows/${id}/versions`);
  const at = versions.find((each) => each.version === version)?.createdAt ?? updatedAt;
  if (!can("admin")) return { at };
  const until = new Date(Date.parse(at) + NOTED_WITHIN_MS).toISOString();
  const query = { action: "workflow.saved", since: at, until, limit: 100 };
  const noted = await api
    .get<{ entries: AuditEntry[] }>("/api/audit", { query })
    .catch(() => ({ entries: [] as AuditEntry[] }));
  // Newest first: a later save of the same workflow is another version's
  return { at, by: noted.entries.filter(({ target }) => target?.id === id).pop()?.actor };
}
