/** What the three lists of keys have in common: pages, the dialog that makes one, the question before one is revoked. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import type { Kind } from "../../api/changes";
import { api } from "../../api/client";
import { usePages } from "../../api/resource";
import { Button } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { EmptyState, Loaded, Skeleton } from "../../parts/states";
import { query, setQuery } from "../../router";
import { toast } from "../../shell/toasts";
import { words } from "./words";

const PAGE = 100;

interface KeyPage<K> {
  keys: K[];
  nextCursor?: string | null;
  /** Of delivery keys, whose fields have these names. */
  next_cursor?: string | null;
}

/** The keys of a list. */
export const useKeys = <K,>(path: string, on: Kind) =>
  usePages<K>(
    async (cursor, signal) => {
      const page = await api.get<KeyPage<K>>(path, { query: { limit: PAGE, cursor }, signal });
      return { items: page.keys, next: page.nextCursor ?? page.next_cursor };
    },
    path,
    [on],
  );

/** Opens `make` when the palette asks for a new one. */
export function useNew(make: () => void, isAllowed: boolean) {
  const isAsked = query.value.get("new") !== null;
  useEffect(() => {
    if (!isAsked) return;
    setQuery({ new: undefined });
    if (isAllowed) make();
  }, [isAsked]);
}

/** Asks, and revokes; resolves with whether it was done. */
export async function revoke(
  path: string,
  texts: { revokeTitle: string; revokeBody: string; revoked: string },
): Promise<boolean> {
  const done = await ask({
    title: texts.revokeTitle,
    body: texts.revokeBody,
    verb: words.delete,
    action: () => api.delete(path),
  });
  if (done) toast(texts.revoked);
  return done;
}

interface KeysProps<K> {
  of: ReturnType<typeof useKeys<K>>;
  about: string;
  empty: { title: string; curl: string; guide: { href: string; label: string } };
  /** Undefined for those who may not make one. */
  action?: ComponentChildren;
  children: (keys: K[]) => ComponentChildren;
}

export function KeyList<K>({ of: list, about, empty, action, children }: KeysProps<K>) {
  return (
    <Loaded of={list} skeleton={<Skeleton rows={4} height={56} />}>
      {({ items: keys, hasMore }) =>
        keys.length === 0 ? (
          <EmptyState icon="key" title={empty.title} action={action} curl={empty.curl} guide={empty.guide}>
            {about}
          </EmptyState>
        ) : (
          <>
            <div class="keys-about">
              <p class="soft">{about}</p>
              {action}
            </div>
            <div class="card">{children(keys)}</div>
            {hasMore && <Button onClick={list.more}>{words.more}</Button>}
          </>
        )
      }
    </Loaded>
  );
}

/** The JSON request that makes a key, as a command. */
export const curl = (path: string, body: object) =>
  `curl -s '${serviceUrl()}${path}' \\\n  -H "Authorization: Bearer $KEY" --json '${JSON.stringify(body)}'`;
