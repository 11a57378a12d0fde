/** The signed-in user: role, password, sessions. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { type Session, session, signedIn } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { Page, Section } from "../../parts/page";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { SettingsTabs } from "../shared/settings_tabs";
import { browserName } from "./browser";
import { words } from "./words";

interface SessionRecord {
  id: string;
  current: boolean;
  createdAt: string;
  lastUsedAt: string;
  network: string | null;
  userAgent: string | null;
}

export default function Account() {
  return (
    <Page title={words.title}>
      <SettingsTabs />
      <div class="columns">
        <Who />
        <Password />
      </div>
      <Sessions />
    </Page>
  );
}

function Who() {
  const signed = session.value;
  if (!signed) return null;
  const { user, account } = signed;
  return (
    <Section title={words.who}>
      <dl class="facts">
        <dt>{words.user}</dt>
        <dd>
          <Name>{user.username}</Name>
        </dd>
        <dt>{words.role}</dt>
        <dd>
          {words.roles[user.role]}
          {user.operator && <p class="soft small">{words.operator}</p>}
        </dd>
        <dt>{words.account}</dt>
        <dd>
          <Name>{account.name}</Name>
        </dd>
        <dt>{words.plan}</dt>
        <dd>{account.plan}</dd>
      </dl>
    </Section>
  );
}

function Password() {
  const change = async (values: FormData) => {
    const body = {
      currentPassword: values.get("currentPassword"),
      newPassword: values.get("newPassword"),
    };
    signedIn(await api.patch<Session>("/api/session/password", body));
    for (const field of document.querySelectorAll<HTMLInputElement>('input[type="password"]'))
      field.value = "";
    toast(words.changed, "good");
  };
  return (
    <Section title={words.password}>
      <Form action={change} label={words.password}>
        {/* For password managers: whose password it is. */}
        <input
          type="text"
          name="username"
          autoComplete="username"
          value={session.value?.user.username}
          hidden
          readOnly
        />
        <TextField
          label={words.current}
          name="currentPassword"
          type="password"
          autoComplete="current-password"
          required
        />
        <TextField
          label={words.next}
          name="newPassword"
          type="password"
          autoComplete="new-password"
          hint={words.nextHint}
          minLength={8}
          required
        />
        <div class="actions">
          <Submit>{words.change}</Submit>
        </div>
      </Form>
    </Section>
  );
}

function Sessions() {
  const list = useResource(
    (signal) => api.get<{ sessions: SessionRecord[] }>("/api/sessions", { signal }),
    [],
    { on: ["session"] },
  );
  return (
    <Section title={words.sessions}>
      <p class="soft">{words.sessionsAbout}</p>
      <Loaded of={list} skeleton={<Skeleton rows={2} height={56} />}>
        {({ sessions }) => <SessionTable sessions={sessions} changed={list.reload} />}
      </Loaded>
    </Section>
  );
}

function SessionTable({ sessions, changed }: { sessions: SessionRecord[]; changed: () => void }) {
  const end = async (item: SessionRecord) => {
    const path = `/api/sessions/${item.id}`;
    const done = await ask({
      title: words.endTitle,
      body: words.endBody,
      verb: words.end,
      action: () => api.delete(path),
    });
    if (!done) return;
    toast(words.ended);
    changed();
  };
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.browser}</th>
          <th scope="col">{words.network}</th>
          <th scope="col">{words.since}</th>
          <th scope="col">{words.used}</th>
          <th scope="col">
            <span class="visually-hidden">{words.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {sessions.map((item) => (
          <tr key={item.id}>
            <th scope="row">
              <Name>{item.userAgent ? browserName(item.userAgent) : words.unknown}</Name>{" "}
              {item.current && <Badge tone="good">{words.here}</Badge>}
            </th>
            <td data-label={words.network}>{item.network ?? words.unknown}</td>
            <td data-label={words.since}>
              <Ago at={item.createdAt} />
            </td>
            <td data-label={words.used}>
              <Ago at={item.lastUsedAt} />
            </td>
            <td class="end">
              {!item.current && (
                <Button small look="danger" onClick={() => end(item)}>
                  {words.end}
                </Button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
