/** When what is shown is loaded again after changes: soon, and seldom while uploads need the session's requests. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Kind, onChanges } from "../../api/changes";

/** Set by the queue of uploads. */
export const isUploading = signal(false);

const FIRST_MS = 50;
const PAUSE_MS = 900;
const PAUSE_OF_UPLOADS_MS = 4_000;

/** Calls `reload` after changes of these kinds, with pauses. `kinds` is a constant. */
export function useRefresh(kinds: Kind[], reload: () => void) {
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const end = onChanges(kinds, () => {
      if (timer) return;
      const pause = isUploading.peek() ? PAUSE_OF_UPLOADS_MS : PAUSE_MS;
      timer = setTimeout(
        () => {
          timer = undefined;
          last = Date.now();
          latest.current();
        },
        Math.max(FIRST_MS, last + pause - Date.now()),
      );
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [kinds]);
}
