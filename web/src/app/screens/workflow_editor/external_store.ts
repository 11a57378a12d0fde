/** Selectors of `zustand` stores on Preact, in place of React's `use-sync-external-store` (`build.mjs`), for the canvas. */
import { useSyncExternalStore } from "preact/compat";
import { useRef } from "preact/hooks";

interface Selected<State, Selection> {
  state: State;
  selector: (state: State) => Selection;
  selection: Selection;
}

/** Takes a selection out of a store's state; the same value while `isEqual` says that it is. */
function useSyncExternalStoreWithSelector<State, Selection>(
  subscribe: (onChange: () => void) => () => void,
  getState: () => State,
  _ofServer: unknown,
  selector: (state: State) => Selection,
  isEqual?: (a: Selection, b: Selection) => boolean,
): Selection {
  const last = useRef<Selected<State, Selection> | null>(null);
  return useSyncExternalStore(subscribe, () => {
    const state = getState();
    const before = last.current;
    if (before && before.state === state && before.selector === selector) return before.selection;
    const next = selector(state);
    const selection = before && isEqual?.(before.selection, next) ? before.selection : next;
    last.current = { state, selector, selection };
    return selection;
  });
}

export default { useSyncExternalStoreWithSelector };
