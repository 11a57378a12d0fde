/** Values in running text: names, times, sizes. */
import { useEffect, useState } from "preact/hooks";
import {
  formatAgo,
  formatBytes,
  formatDateTime,
  formatDuration,
  formatExactly,
  formatNumber,
} from "./format";

/** A name that a user chose: its direction does not reach the text around it, and it breaks rather than overflows. */
export function Name({ children, class: extra = "" }: { children: string; class?: string }) {
  return (
    <bdi class={`name ${extra}`} title={children}>
      {children}
    </bdi>
  );
}

/** The date and time here, to the second when it is `exact`; in UTC in the title. */
export function Time({ at, exact = false }: { at: string; exact?: boolean }) {
  const date = new Date(at);
  return (
    <time dateTime={at} title={date.toISOString()}>
      {exact ? formatExactly(date) : formatDateTime(date)}
    </time>
  );
}

/** How long ago, kept true while it is shown. */
export function Ago({ at }: { at: string }) {
  const now = useNow(20_000);
  return (
    <time dateTime={at} title={`${formatDateTime(new Date(at))} (${new Date(at).toISOString()})`}>
      {formatAgo(new Date(at), now)}
    </time>
  );
}

/** The time since, as a clock that runs. */
export function Since({ at }: { at: string }) {
  const now = useNow(1_000);
  return (
    <time class="numeric" dateTime={at}>
      {formatDuration(now - Date.parse(at))}
    </time>
  );
}

export const Bytes = ({ value }: { value: number }) => (
  <span class="numeric" title={`${formatNumber(value)} bytes`}>
    {formatBytes(value)}
  </span>
);

export const Num = ({ value }: { value: number }) => <span class="numeric">{formatNumber(value)}</span>;

/** The time in milliseconds, new every `every` ms. */
export function useNow(every: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
