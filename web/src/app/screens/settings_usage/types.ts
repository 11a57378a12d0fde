/** Usage and plan of an account, as the API answers them. */
interface Used {
  used: number;
  limit: number | null;
  resetsAt: string;
}

export interface Usage {
  plan: string;
  operations: Used;
  deliveries: Used;
  storage: { files: number; usedBytes: number; limitBytes: number | null };
  limits: {
    requestsPerMinute: number | null;
    filesPerBatch: number;
    imageUploadBytes: number;
    videoUploadBytes: number;
  };
  upgradeUrl: string;
}

export interface KeyTotal {
  id: string;
  name: string;
  isRevoked: boolean;
  hits: number;
  misses: number;
  bytes: number;
}

export interface History {
  operations: {
    total: number;
    kinds: { kind: string; total: number }[];
    days: { date: string; total: number }[];
  };
  deliveries: {
    total: number;
    bytes: number;
    keys: KeyTotal[];
    days: { date: string; total: number; hits: number }[];
  };
}
