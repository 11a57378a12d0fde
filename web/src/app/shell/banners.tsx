/** What holds for the whole page: no connection. */
import { offlineSince } from "../api/connection";
import { formatTime } from "../parts/format";
import { Icon } from "../parts/icon";

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
