/** What holds for the whole page: no connection, and to operators what is not well with the service. */
import { offlineSince } from "../api/connection";
import { session } from "../api/session";
import { formatTime } from "../parts/format";
import { Icon } from "../parts/icon";
import { href } from "../router";
import { problems } from "./readiness";
import { words } from "./words";

export function OfflineBanner() {
  const since = offlineSince.value;
  return (
    <div aria-live="assertive" class="banner-place">
      {since && (
        <p class="banner">
          <Icon name="warn" />
          No connection since {formatTime(since)}: shown as of then, and nothing can be changed until it is
          back.
        </p>
      )}
    </div>
  );
}

export function SystemBanner() {
  const [first, ...others] = session.value?.user.operator && !offlineSince.value ? problems.value : [];
  return (
    <div role="status" class="banner-place">
      {first && (
        <p class={`banner ${first.blocking ? "banner-bad" : ""}`}>
          <Icon name={first.blocking ? "error" : "warn"} />
          <span class="banner-text">
            {first.name}: {first.reason}
            {others.length > 0 && ` ${words.further(others.length)}`}
          </span>
          <a href={href("/system")}>{words.system}</a>
        </p>
      )}
    </div>
  );
}
