/** The account's invitations: made, used, expired, revoked. */
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Menu } from "../../parts/menu";
import { Badge, EmptyState, Loaded, Skeleton, type Tone } from "../../parts/states";
import { Ago, Name, Time, useNow } from "../../parts/values";
import { query, setQuery } from "../../router";
import { curlItem } from "../../shell/curl_panel";
import { toast } from "../../shell/toasts";
import { invite } from "./invite";
import { type InvitationState, stateOf } from "./state";
import type { Invitation } from "./types";
import { words } from "./words";

const PATH = "/api/invitations";
const TONES: Record<InvitationState, Tone> = { open: "info", used: "good", expired: "calm" };

export function Invitations() {
  const list = useResource((signal) => api.get<{ invitations: Invitation[] }>(PATH, { signal }), [], {
    on: ["user"],
  });
  const isAsked = query.value.get("new") !== null;
  useEffect(() => {
    if (!isAsked) return;
    setQuery({ new: undefined });
    invite(list.reload);
  }, [isAsked]);
  const action = (
    <Button look="solid" icon="plus" onClick={() => invite(list.reload)}>
      {words.invite}
    </Button>
  );
  return (
    <Loaded of={list} skeleton={<Skeleton rows={4} height={56} />}>
      {({ invitations }) =>
        invitations.length === 0 ? (
          <EmptyState
            icon="user"
            title={words.invitations.emptyTitle}
            action={action}
            curl={`curl -s '${serviceUrl()}${PATH}' \\\n  -H "Authorization: Bearer $KEY" --json '{"role":"member"}'`}
            guide={{ href: "/guides/dashboard", label: words.invitations.guide }}
          >
            {words.invitations.about}
          </EmptyState>
        ) : (
          <>
            <div class="keys-about">
              <p class="soft">{words.invitations.about}</p>
              {action}
            </div>
            <div class="card">
              <Table invitations={invitations} changed={list.reload} />
            </div>
          </>
        )
      }
    </Loaded>
  );
}

function Table({ invitations, changed }: { invitations: Invitation[]; changed: () => void }) {
  const now = useNow(20_000);
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.invitations.for}</th>
          <th scope="col">{words.role}</th>
          <th scope="col">{words.invitations.state}</th>
          <th scope="col">{words.invitations.by}</th>
          <th scope="col">{words.invitations.expires}</th>
          <th scope="col">
            <span class="visually-hidden">{words.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {invitations.map((item) => (
          <Row key={item.id} item={item} state={stateOf(item, now)} changed={changed} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  item: Invitation;
  state: InvitationState;
  changed: () => void;
}

function Row({ item, state, changed }: RowProps) {
  return (
    <tr>
      <th scope="row">
        {item.note ? <Name>{item.note}</Name> : <span class="soft">{words.invitations.unnamed}</span>}
      </th>
      <td data-label={words.role}>{words.roles[item.role]}</td>
      <td data-label={words.invitations.state}>
        <span class="member-name">
          <Badge tone={TONES[state]}>{words.invitations[state]}</Badge>
          {item.usedBy && <bdi class="soft small">{words.invitations.usedBy(item.usedBy)}</bdi>}
        </span>
      </td>
      <td data-label={words.invitations.by}>
        <span>
          <Name>{item.createdBy}</Name>, <Ago at={item.createdAt} />
        </span>
      </td>
      <td data-label={words.invitations.expires}>
        <Time at={item.expiresAt} />
      </td>
      <td class="end">
        <Menu
          label={words.actionsOf(item.note ?? words.roles[item.role])}
          items={[
            curlItem,
            state === "open" && {
              label: words.invitations.revoke,
              icon: "trash",
              danger: true,
              onSelect: () => revoke(item, changed),
            },
          ]}
        />
      </td>
    </tr>
  );
}

async function revoke(item: Invitation, changed: () => void) {
  const done = await ask({
    title: words.invitations.revokeTitle,
    body: words.invitations.revokeBody,
    verb: words.invitations.revoke,
    action: () => api.delete(`${PATH}/${item.id}`),
  });
  if (!done) return;
  toast(words.invitations.revoked);
  changed();
}
