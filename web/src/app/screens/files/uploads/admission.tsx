/** Rejects what has no room before anything is sent: no room on the disk, or in the plan. */
import { api } from "../../../api/client";
import { Button, ButtonLink } from "../../../parts/button";
import { Dialog, openDialog } from "../../../parts/dialog";
import { formatBytes } from "../../../parts/format";
import { Meter } from "../../../parts/states";
import { href } from "../../../router";
import { problems } from "../../../shell/readiness";
import type { StorageUse } from "../types";
import { words } from "./words";

/** Explains why the files cannot be stored; null when they can, as far as is known. */
export async function rejection(
  files: number,
  bytes: number,
  queued: { bytes: number; sent: number },
): Promise<(() => Promise<void>) | null> {
  const full = problems.peek().find(({ name }) => name === "disk" || name === "storage");
  if (full) return () => explain(words.diskFull, <p>{full.reason}</p>);
  const use = await api.get<StorageUse>("/api/usage").catch(() => null);
  const { usedBytes, limitBytes } = use?.storage ?? { usedBytes: 0, limitBytes: null };
  if (limitBytes === null) return null;
  const left = Math.max(0, limitBytes - usedBytes - (queued.bytes - queued.sent));
  if (bytes <= left) return null;
  return () =>
    explain(
      words.noRoom,
      <>
        <p>{words.needs(files, bytes, left)}</p>
        <Meter label={words.storage} value={usedBytes} limit={limitBytes} format={formatBytes} />
      </>,
    );
}

function explain(title: string, body: preact.ComponentChildren) {
  return openDialog((close) => (
    <Dialog title={title} onClose={close}>
      <div class="prose">{body}</div>
      <div class="dialog-actions">
        <Button onClick={close}>{words.close}</Button>
        <ButtonLink href={href("/settings/usage")} look="solid">
          {words.plan}
        </ButtonLink>
      </div>
    </Dialog>
  ));
}
