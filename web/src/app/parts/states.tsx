/** The states that every screen has: loading, empty, error. */
import type { ComponentChildren } from "preact";
import { api } from "../api/client";
import { offlineSince } from "../api/connection";
import type { ApiError } from "../api/error";
import { type Resource, useDelayed, useResource } from "../api/resource";
import { href } from "../router";
import { Button } from "./button";
import { CopyField } from "./copy";
import { formatBytes, formatDate, formatNumber } from "./format";
import { Icon, type IconName } from "./icon";

/** Boxes of the size of what comes. `rows` lines of `height` pixels. */
export function Skeleton({ rows = 3, height = 44 }: { rows?: number; height?: number }) {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: rows }, (_, i) => (
        // Rows of a skeleton are alike
        <div key={i} class="skeleton-row" style={{ height: `${height}px` }} />
      ))}
    </div>
  );
}

/** Draws a resource: the skeleton while it loads, its error with "Try again", then the data; with a line above old data whose refresh failed. */
export function Loaded<T>({
  of,
  skeleton,
  children,
}: {
  of: Resource<T>;
  skeleton?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}) {
  const isSlow = useDelayed(of.data === undefined && of.isLoading);
  if (of.data === undefined) {
    // Without connection the banner says so; it is loaded when the connection is back.
    const isWaiting = of.error?.status === 0 && offlineSince.value !== null;
    if (of.error && !isWaiting) return <ErrorState error={of.error} retry={of.reload} />;
    return (
      <div aria-busy="true" class="loading">
        {(isSlow || isWaiting) && (skeleton ?? <Skeleton />)}
        {isSlow && <p class="visually-hidden">Loading</p>}
      </div>
    );
  }
  return (
    <>
      {of.error && of.error.status !== 0 && <ErrorState error={of.error} retry={of.reload} />}
      {children(of.data)}
    </>
  );
}

/** An error in place of a part, with the API's sentence and what to do. */
export function ErrorState({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="callout callout-bad" role="alert">
      <Icon name="error" />
      <div class="callout-text">
        <p>{error.message}</p>
        <Remedy error={error} />
      </div>
      {retry && (
        <Button small icon="reload" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** An error inside of a form. */
export function ErrorText({ error }: { error: ApiError }) {
  return (
    <div class="callout callout-bad" role="alert" tabIndex={-1}>
      <Icon name="error" />
      <div class="callout-text">
        <p>{error.message}</p>
        <Remedy error={error} />
      </div>
    </div>
  );
}

function Remedy({ error }: { error: ApiError }) {
  const what = USED_UP[error.code ?? ""];
  if (what) return <UsedUp what={what} />;
  // The message says to look before it is tried again
  if (error.code === "outcome_unknown") return null;
  if (error.retryAfter && !error.message.includes("try again in"))
    return <p>It can be tried again in {error.retryAfter} s.</p>;
  return null;
}

/** Quotas by the error's code when they are used up. */
const USED_UP: Record<string, keyof Quotas> = {
  operations_used_up: "operations",
  deliveries_used_up: "deliveries",
  storage_used_up: "storage",
};

/** The parts of `GET /api/usage` that say how much of the plan is left. */
export interface Quotas {
  operations: { used: number; limit: number | null; resetsAt: string };
  deliveries: { used: number; limit: number | null; resetsAt: string };
  storage: { usedBytes: number; limitBytes: number | null };
}

/** The meter of a quota, when it begins again, and where a larger plan is found. */
function UsedUp({ what }: { what: keyof Quotas }) {
  const { data } = useResource((signal) => api.get<Quotas>("/api/usage", { signal }), []);
  const labels = { operations: "Operations", deliveries: "Image deliveries", storage: "Storage" };
  const isBytes = what === "storage";
  return (
    <>
      {data && (
        <Meter
          label={labels[what]}
          value={isBytes ? data.storage.usedBytes : data[what].used}
          limit={isBytes ? data.storage.limitBytes : data[what].limit}
          format={isBytes ? formatBytes : formatNumber}
          note={isBytes ? "Delete files, or take a larger plan." : resetNote(data[what].resetsAt)}
        />
      )}
      <p>
        <a href={href("/settings/usage")}>Usage and plan</a>
      </p>
    </>
  );
}

const resetNote = (at: string) => `The count begins again on ${formatDate(new Date(at))}.`;

interface EmptyProps {
  icon: IconName;
  title: string;
  /** What it is for, in one or two sentences. */
  children: ComponentChildren;
  /** The one primary action. */
  action?: ComponentChildren;
  /** The same by the API. */
  curl?: string;
  /** "/guides/NAME". */
  guide?: { href: string; label: string };
}

export function EmptyState({ icon, title, children, action, curl, guide }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} class="icon-l" />
      <h2>{title}</h2>
      <div class="empty-text">{children}</div>
      {action && <div class="actions">{action}</div>}
      {curl && <CopyField label="The same by the API" value={curl} code />}
      {guide && <a href={href(guide.href)}>{guide.label}</a>}
    </div>
  );
}

export type Tone = "good" | "warn" | "bad" | "live" | "calm" | "info";

/** A status in a word; the colour only repeats it. */
export function Badge({
  tone = "calm",
  children,
  dot,
}: {
  tone?: Tone;
  children: ComponentChildren;
  dot?: boolean;
}) {
  return (
    <span class={`tag tag-${tone}`}>
      {dot && <span class="tag-dot" aria-hidden="true" />}
      {children}
    </span>
  );
}

/** A message in place: what is wrong or good to know, with what to do. */
export function Callout({
  tone = "info",
  title,
  children,
  actions,
}: {
  tone?: "info" | "good" | "warn" | "bad";
  title?: ComponentChildren;
  children?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  const icon = { info: "info", good: "check", warn: "warn", bad: "error" } as const;
  return (
    <div class={`callout callout-${tone}`}>
      <Icon name={icon[tone]} />
      <div class="callout-text">
        {title && <p class="callout-title">{title}</p>}
        {children}
      </div>
      {actions && <div class="actions">{actions}</div>}
    </div>
  );
}

interface MeterProps {
  label: string;
  value: number;
  /** Null: without limit. */
  limit: number | null;
  format: (value: number) => string;
  note?: ComponentChildren;
}

/** How much of a limit is used. */
export function Meter({ label, value, limit, format, note }: MeterProps) {
  const share = limit ? value / limit : 0;
  return (
    <div class={`meter ${share >= 1 ? "meter-full" : share >= 0.8 ? "meter-high" : ""}`}>
      <span class="meter-label">{label}</span>
      <span class="meter-value numeric">
        {format(value)}
        {limit !== null && <span class="soft"> of {format(limit)}</span>}
      </span>
      {limit !== null && (
        <meter
          aria-label={label}
          min={0}
          max={limit}
          value={Math.min(value, limit)}
          high={limit * 0.8}
          optimum={0}
        />
      )}
      {note && <span class="meter-note">{note}</span>}
    </div>
  );
}
