/** The link of a folder: its terms, its counts, its end. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, ButtonLink, Submit } from "../../parts/button";
import { CopyField } from "../../parts/copy";
import { ask, Dialog, openDialog } from "../../parts/dialog";
import { Checkbox, Form, Select, TextField } from "../../parts/form";
import { Badge, Loaded } from "../../parts/states";
import { Name, Time } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { shareWords as words } from "./share_words";

export interface Share {
  folderId: string;
  url: string;
  zipUrl: string;
  expiresAt: string | null;
  createdAt: string;
  hasPassword: boolean;
  downloadLimit: number | null;
  allowDownload: boolean;
  viewCount: number;
  downloadCount: number;
}

export const openShare = (folder: { id: string; name: string }) =>
  openDialog((close) => (
    <Dialog title={<Name>{words.title(folder.name)}</Name>} onClose={close}>
      <ShareOf folder={folder} close={close} />
    </Dialog>
  ));

/** Asks, and ends the link; resolves with whether it is ended. */
export async function revoke(folderId: string): Promise<boolean> {
  const done = await ask({
    title: words.revokeTitle,
    body: words.revokeBody,
    verb: words.revoke,
    action: () => api.delete(`/api/folders/${folderId}/share`),
  });
  if (done) toast(words.revoked);
  return done;
}

function ShareOf({ folder, close }: { folder: { id: string }; close: () => void }) {
  const path = `/api/folders/${folder.id}/share`;
  const [isChanging, setChanging] = useState(false);
  const share = useResource<Share | null>(
    async (signal) => {
      try {
        return (await api.get<{ share: Share }>(path, { signal })).share;
      } catch (thrown) {
        if (thrown instanceof ApiError && thrown.status === 404) return null;
        throw thrown;
      }
    },
    [path],
    { on: ["share"], id: folder.id },
  );
  const create = async (terms: object) => {
    share.set((await api.post<{ share: Share }>(path, terms)).share);
    setChanging(false);
  };
  return (
    <Loaded of={share}>
      {(data) => {
        if (data && !isChanging)
          return (
            <Shown
              share={data}
              close={close}
              change={() => setChanging(true)}
              revoke={() => revoke(folder.id).then((done) => done && share.set(null))}
            />
          );
        if (!can("write")) return <p>{`${words.none} ${words.viewer}`}</p>;
        return (
          <Terms
            create={create}
            replaces={Boolean(data)}
            cancel={() => (data ? setChanging(false) : close())}
          />
        );
      }}
    </Loaded>
  );
}

export function ShareTerms({ share }: { share: Share }) {
  return (
    <span class="actions">
      <Badge tone={share.hasPassword ? "info" : "calm"}>
        {share.hasPassword ? words.withPassword : words.withoutPassword}
      </Badge>
      {!share.allowDownload && <Badge tone="info">{words.lookingOnly}</Badge>}
    </span>
  );
}

interface ShownProps {
  share: Share;
  close: () => void;
  change: () => void;
  revoke: () => void;
}

function Shown({ share, close, change, revoke }: ShownProps) {
  return (
    <div class="form">
      <CopyField label={words.link} value={share.url} />
      {share.allowDownload && !share.hasPassword && <CopyField label={words.zipLink} value={share.zipUrl} />}
      <dl class="facts">
        <dt>{words.validUntil}</dt>
        <dd>{share.expiresAt ? <Time at={share.expiresAt} /> : words.never}</dd>
        <dt>{words.terms}</dt>
        <dd>
          <ShareTerms share={share} />
        </dd>
        <dt>{words.used}</dt>
        <dd>{words.counts(share.viewCount, share.downloadCount, share.downloadLimit)}</dd>
      </dl>
      <div class="dialog-actions">
        {can("write") && (
          <>
            <Button look="danger" onClick={revoke}>
              {words.revoke}
            </Button>
            <Button onClick={change}>{words.change}</Button>
          </>
        )}
        <ButtonLink href={share.url} icon="out" target="_blank">
          {words.open}
        </ButtonLink>
        <Button look="solid" onClick={close}>
          {words.close}
        </Button>
      </div>
    </div>
  );
}

interface TermsProps {
  create: (terms: object) => Promise<void>;
  replaces: boolean;
  cancel: () => void;
}

function Terms({ create, replaces, cancel }: TermsProps) {
  const [expiry, setExpiry] = useState("604800");
  const send = (values: FormData) => {
    const limit = String(values.get("downloadLimit") ?? "").trim();
    const until = String(values.get("expiresAt") ?? "");
    return create({
      ...(expiry === "date"
        ? { expiresAt: new Date(until).toISOString() }
        : { expiresIn: expiry === "" ? null : Number(expiry) }),
      password: String(values.get("password") ?? "") || undefined,
      downloadLimit: limit ? Number(limit) : null,
      allowDownload: values.get("looking") !== "on",
    });
  };
  return (
    <Form action={send}>
      <p class="soft">{replaces ? words.replaceNote : words.lead}</p>
      <div class="form-row">
        <Select
          label={words.expires}
          name="expiresIn"
          value={expiry}
          onChange={(event) => setExpiry(event.currentTarget.value)}
          choices={["86400", "604800", "2592000", "7776000", "", "date"].map((value) => ({
            value,
            label: words.expiries[value] ?? value,
          }))}
        />
        {expiry === "date" && (
          <TextField label={words.until} name="expiresAt" type="datetime-local" required min={soonest()} />
        )}
        <TextField label={words.limit} name="downloadLimit" type="number" min={1} hint={words.limitHint} />
      </div>
      <TextField
        label={words.password}
        name="password"
        type="password"
        autoComplete="new-password"
        hint={words.passwordHint}
      />
      <Checkbox name="looking" label={words.looking} hint={words.lookingHint} />
      <div class="dialog-actions">
        <Button onClick={cancel}>{words.cancel}</Button>
        <Submit icon="link">{replaces ? words.replace : words.create}</Submit>
      </div>
    </Form>
  );
}

/** An hour from now in local time, as the field writes it: a link is valid for an hour at least. */
function soonest(): string {
  const now = new Date();
  return new Date(now.getTime() + 3_660_000 - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
