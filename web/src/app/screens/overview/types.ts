/** Records that the Overview reads, as the API answers them. */
export interface Health {
  id: string;
  name: string;
  advice: string[];
  trouble: Record<"recording" | "disk" | "database" | "pull", string | null>;
}

export interface Webhook {
  id: string;
  url: string;
  status: "active" | "suspended" | "paused";
  statusReason: string | null;
  statusSince?: string;
  waiting?: number;
}

export interface Used {
  used: number;
  limit: number | null;
  resetsAt: string;
}

export interface Usage {
  plan: string;
  operations: Used;
  deliveries: Used;
  storage: { files: number; usedBytes: number; limitBytes: number | null };
}
