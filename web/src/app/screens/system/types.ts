/** Answers of `/api/system…`, as far as the screen shows them. */

export interface Reason {
  name: string;
  reason: string;
  blocking: boolean;
}

export interface Program {
  version: string;
  schema: number;
}

export interface Worker {
  kind: string;
  running: number;
  most: number;
  busy: number;
  waiting: number;
  oldestWaitMs: number;
  killed: number;
  died: number;
  reason: string | null;
}

export interface System {
  version: string;
  build: string;
  startedAt: string;
  stage: string;
  reasons: Reason[];
  components: { name: string; state: string; reason: string | null; restarts: number }[];
  workers: Worker[];
  queues: { name: string; running: number; waiting: number }[];
  disk: {
    total: number | null;
    free: number | null;
    minFree: number | null;
    dataDir: string;
    kinds: { kind: string; bytes: number; files: number }[];
    complete: boolean;
    measuredAt: string | null;
  };
  database: {
    engine: string;
    bytes: number;
    schema: number;
    newerSchemaWaits: boolean;
    lastBackupAt: string | null;
    lastBackupFolder: string | null;
    writerWaitMs: number;
    failure: string | null;
  };
  objects: ObjectStore | null;
  listeners: { protocol: string; transport: string; address: string | null; open: boolean }[];
  onAir: { inputs: number; viewers: number };
  nodes: Node[];
  newerProgram: Program | null;
}

export interface ObjectStore {
  place: string;
  failure: string | null;
  sent: ObjectRequests;
  fetched: ObjectRequests;
  damaged: number;
  cache: { bytes: number; bound: number; hits: number; misses: number };
  lastSearch: { at: string; deleted: number } | null;
}

export interface ObjectRequests {
  requests: number;
  failures: number;
  bytes: number;
}

export interface Node {
  id: string;
  name: string;
  version: string;
  startedAt: string;
  you: boolean;
  state: string;
  roles: string[];
  address: string | null;
  schema: number;
  leaseUntil: string | null;
  clockOffsetMs: number;
}

export interface LogLine {
  number: number;
  time: string;
  level: string;
  target: string;
  text: string;
}

export interface LogLines {
  lines: LogLine[];
  newest: number;
  oldest: number;
}

export interface Report {
  ok: boolean;
  checks: { check: string; level: string; message: string; advice: string | null }[];
}

export interface Setting {
  key: string;
  value: unknown;
  source: string;
  variable: string | null;
}

export interface Settings {
  file: string | null;
  settings: Setting[];
}

export interface Account {
  id: string;
  name: string;
  plan: string;
  planIsKnown: boolean;
  suspendedAt: string | null;
  createdAt: string;
  users: number;
  keys: number;
  own: boolean;
}

export interface Accounts {
  accounts: Account[];
  plans: string[];
  nextCursor: string | null;
}

export interface AccountMade {
  account: Account;
  welcomeUrl: string | null;
  welcomeExpiresAt: string | null;
}
