/** The users of the account: role, link for a new password, removal. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { type Role, session } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { ask, Dialog, openDialog, showSecret } from "../../parts/dialog";
import { Form, Switch } from "../../parts/form";
import { formatDateTime } from "../../parts/format";
import { Menu } from "../../parts/menu";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { curlItem } from "../../shell/curl_panel";
import { toast } from "../../shell/toasts";
import { invite } from "./invite";
import { RoleChoice } from "./role_choice";
import type { User } from "./types";
import { words } from "./words";

const PATH = "/api/users";

export function Users() {
  const list = useResource((signal) => api.get<{ users: User[] }>(PATH, { signal }), [], { on: ["user"] });
  return (
    <>
      <div class="keys-about">
        <p class="soft">{words.members.about}</p>
        <Button look="solid" icon="plus" onClick={() => invite()}>
          {words.invite}
        </Button>
      </div>
      <Loaded of={list} skeleton={<Skeleton rows={4} height={56} />}>
        {({ users }) => (
          <div class="card">
            <Table users={users} changed={list.reload} />
          </div>
        )}
      </Loaded>
    </>
  );
}

function Table({ users, changed }: { users: User[]; changed: () => void }) {
  const admins = users.filter(({ role }) => role === "admin").length;
  return (
    <table class="table table-cards members-table">
      <thead>
        <tr>
          <th scope="col">{words.name}</th>
          <th scope="col">{words.role}</th>
          <th scope="col">{words.joined}</th>
          <th scope="col">{words.seen}</th>
          <th scope="col">
            <span class="visually-hidden">{words.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {users.map((user) => (
          <tr key={user.id}>
            <th scope="row">
              <span class="member-name">
                <Name>{user.name}</Name>
                {user.you && <Badge tone="good">{words.you}</Badge>}
                {user.operator && <Badge tone="info">{words.operator}</Badge>}
              </span>
            </th>
            <td data-label={words.role}>
              <Badge tone={user.role === "admin" ? "warn" : "calm"}>{words.roles[user.role]}</Badge>
            </td>
            <td data-label={words.joined}>
              <Ago at={user.createdAt} />
            </td>
            <td data-label={words.seen}>{user.lastSeenAt ? <Ago at={user.lastSeenAt} /> : words.never}</td>
            <td class="end">
              <Actions user={user} isLastAdmin={user.role === "admin" && admins === 1} changed={changed} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Actions({ user, isLastAdmin, changed }: { user: User; isLastAdmin: boolean; changed: () => void }) {
  const isMine = !user.operator || session.value?.user.operator === true;
  return (
    <Menu
      label={words.actionsOf(user.name)}
      items={[
        {
          label: isMine ? words.members.changeRole : words.members.forOperators,
          icon: "edit",
          disabled: !isMine,
          onSelect: () => changeRole(user, isLastAdmin, changed),
        },
        isMine &&
          !user.you && { label: words.members.resetLink, icon: "link", onSelect: () => resetLink(user) },
        curlItem,
        isMine &&
          !isLastAdmin && {
            label: words.members.remove,
            icon: "trash",
            danger: true,
            onSelect: () => remove(user, changed),
          },
      ]}
    />
  );
}

function changeRole(user: User, isLastAdmin: boolean, changed: () => void) {
  openDialog((close) => (
    <Dialog title={words.members.roleTitle(user.name)} onClose={close}>
      <RoleForm user={user} isLastAdmin={isLastAdmin} close={close} changed={changed} />
    </Dialog>
  ));
}

interface RoleFormProps {
  user: User;
  isLastAdmin: boolean;
  close: () => void;
  changed: () => void;
}

function RoleForm({ user, isLastAdmin, close, changed }: RoleFormProps) {
  const [operator, setOperator] = useState(user.operator);
  const byOperator = session.value?.user.operator === true;
  const save = async (values: FormData) => {
    const role = (values.get("role") as Role | null) ?? user.role;
    await api.patch(`${PATH}/${user.id}`, byOperator ? { role, operator } : { role });
    close();
    toast(words.members.changed(user.name), "good");
    changed();
  };
  return (
    <Form action={save} label={words.members.roleTitle(user.name)}>
      <p class="soft small">{isLastAdmin ? words.members.lastAdmin : words.members.roleNote}</p>
      {!isLastAdmin && <RoleChoice value={user.role} />}
      {byOperator && (
        <Switch
          label={words.members.operatorSwitch}
          hint={words.members.operatorHint}
          checked={operator}
          onChange={setOperator}
        />
      )}
      <div class="dialog-actions">
        <Button onClick={close}>{words.cancel}</Button>
        <Submit>{words.save}</Submit>
      </div>
    </Form>
  );
}

async function resetLink(user: User) {
  let link = { url: "", expiresAt: "" };
  const done = await ask({
    title: words.members.resetTitle(user.name),
    body: words.members.resetBody,
    verb: words.members.resetVerb,
    danger: false,
    action: async () => {
      link = await api.post(`${PATH}/${user.id}/reset-link`);
    },
  });
  if (!done) return;
  const fields = [{ label: words.members.resetLabel, value: link.url }];
  const note = words.members.resetShown(formatDateTime(new Date(link.expiresAt)));
  await showSecret({ title: words.members.resetLabel, note, fields });
}

async function remove(user: User, changed: () => void) {
  const done = await ask({
    title: words.members.removeTitle(user.name),
    body: (
      <>
        <p>{user.you ? words.members.removeSelf : words.members.removeBody}</p>
        <p>{words.members.removeKeys}</p>
      </>
    ),
    verb: words.members.remove,
    action: () => api.delete(`${PATH}/${user.id}`),
  });
  if (!done) return;
  if (user.you) return location.reload();
  toast(words.members.removed(user.name));
  changed();
}
