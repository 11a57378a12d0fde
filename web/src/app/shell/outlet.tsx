/** Shows the screen of the present address: the one before stays until the next one's chunk has come. */

import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useErrorBoundary, useRef, useState } from "preact/hooks";
import { reads } from "../api/calls";
import { asApiError } from "../api/error";
import { useDelayed } from "../api/resource";
import { Page } from "../parts/page";
import { ErrorState } from "../parts/states";
import { type Matched, match } from "../route_match";
import { path } from "../router";
import { notFound, type Route, routes, type ScreenProps } from "../routes";
import { words } from "./words";

interface Shown extends Matched<Route> {
  Screen: ComponentType<ScreenProps>;
}

const screens = new Map<Route, ComponentType<ScreenProps>>();

async function screenOf(route: Route): Promise<ComponentType<ScreenProps>> {
  const known = screens.get(route);
  if (known) return known;
  const { default: Screen } = await route.load();
  screens.set(route, Screen);
  return Screen;
}

/** Loads the chunk of a screen ahead of the click. */
export function prefetch(to: string) {
  const found = match(routes, to);
  if (found) screenOf(found.route).catch(() => {});
}

export const matched = (): Matched<Route> => match(routes, path.value) ?? { route: notFound, params: {} };

/** What makes a screen another one: its route and its parameters except the tab. */
function identity({ route, params }: Matched<Route>): string {
  return JSON.stringify([route.path, ...Object.entries(params).filter(([name]) => name !== "tab")]);
}

export function Outlet() {
  const next = matched();
  const key = identity(next);
  const [shown, setShown] = useState<Shown>();
  const [failed, setFailed] = useState<unknown>();
  const [round, setRound] = useState(0);
  const place = useRef<HTMLElement>(null);
  const isOther = !shown || identity(shown) !== key;
  const isSlow = useDelayed(isOther && failed === undefined);
  const isFirst = useRef(true);

  // `next` is new each time, `key` and the path say when it differs
  useEffect(() => {
    let ended = false;
    setFailed(undefined);
    screenOf(next.route).then(
      (Screen) => {
        if (ended) return;
        if (isOther) reads.value = [];
        setShown({ ...next, Screen });
      },
      (thrown) => !ended && setFailed(thrown),
    );
    return () => {
      ended = true;
    };
  }, [key, path.value, round]);

  const shownKey = shown && identity(shown);
  useEffect(() => {
    if (!shownKey) return;
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    place.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  }, [shownKey]);

  return (
    <main id="main" ref={place} tabIndex={-1} aria-busy={isOther || undefined}>
      {isSlow && <div class="progress-line" aria-hidden="true" />}
      {failed !== undefined ? (
        <Failed title={words.notLoaded} error={failed} retry={() => setRound(round + 1)} />
      ) : (
        shown && (
          <Guarded key={shown.route.lasting ? shown.route.path : shownKey}>
            <shown.Screen params={shown.params} />
          </Guarded>
        )
      )}
    </main>
  );
}

/** Keeps the shell when a screen fails: its navigation still works. */
function Guarded({ children }: { children: ComponentChildren }) {
  // Caught here, the browser would not know of it.
  const [error, reset] = useErrorBoundary((thrown) => reportError(thrown));
  return error === undefined ? children : <Failed title={words.failed} error={error} retry={reset} />;
}

function Failed({ title, error, retry }: { title: string; error: unknown; retry: () => void }) {
  return (
    <Page title={title}>
      <ErrorState error={asApiError(error)} retry={retry} />
      <p class="soft">{words.reload}</p>
    </Page>
  );
}
