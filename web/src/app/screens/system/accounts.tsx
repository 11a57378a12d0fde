/** All accounts with their plans. */
import { api } from "../../api/client";
import { usePages } from "../../api/resource";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog, showSecret } from "../../parts/dialog";
import { Form, Select, TextField } from "../../parts/form";
import { formatDateTime } from "../../parts/format";
import { Menu } from "../../parts/menu";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Ago, Name, Num } from "../../parts/values";
import { curlItem } from "../../shell/curl_panel";
import type { Account, AccountMade, Accounts as List } from "./types";
import { words as all } from "./words";

const words = all.accounts;
const PATH = "/api/system/accounts";
const PAGE = 50;

/** The plans of the last answer: the same for all pages. */
interface Row extends Account {
  plans: string[];
}

export function Accounts() {
  const accounts = usePages<Row>(
    async (cursor, signal) => {
      const {
        accounts: rows,
        plans,
        nextCursor,
      } = await api.get<List>(PATH, { query: { limit: PAGE, cursor }, signal });
      return { items: rows.map((row) => ({ ...row, plans })), next: nextCursor };
    },
    "accounts",
    ["account", "user"],
  );
  return (
    <Loaded of={accounts} skeleton={<Skeleton rows={5} height={48} />}>
      {({ items, hasMore }) => (
        <div class="stack system-stack">
          <div class="toolbar">
            <Button
              look="solid"
              icon="plus"
              onClick={() => newAccount(items[0]?.plans ?? [], accounts.reload)}
            >
              {words.new}
            </Button>
          </div>
          <div class="card">
            <Table rows={items} changed={accounts.reload} />
          </div>
          {hasMore && (
            <div class="actions">
              <Button onClick={accounts.more}>{words.more}</Button>
            </div>
          )}
        </div>
      )}
    </Loaded>
  );
}

function Table({ rows, changed }: { rows: Row[]; changed: () => void }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{all.name}</th>
          <th scope="col">{words.plan}</th>
          <th scope="col">{words.users}</th>
          <th scope="col">{words.keys}</th>
          <th scope="col">{words.since}</th>
          <th scope="col">
            <span class="visually-hidden">{all.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <th scope="row">
              <span class="system-tags">
                <Name>{row.name}</Name>
                {row.own && <Badge tone="info">{words.own}</Badge>}
                {row.suspendedAt && <Badge tone="bad">{words.suspended}</Badge>}
              </span>
            </th>
            <td data-label={words.plan}>
              {row.planIsKnown ? (
                <bdi>{row.plan}</bdi>
              ) : (
                <span title={words.unknownPlan}>
                  <Badge tone="warn">{row.plan}</Badge>
                </span>
              )}
            </td>
            <td data-label={words.users}>
              <Num value={row.users} />
            </td>
            <td data-label={words.keys}>
              <Num value={row.keys} />
            </td>
            <td data-label={words.since}>
              <Ago at={row.createdAt} />
            </td>
            <td class="end">
              <Menu
                label={words.actionsOf(row.name)}
                items={[
                  { label: words.changePlan, icon: "edit", onSelect: () => changePlan(row, changed) },
                  curlItem,
                ]}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const choices = (plans: string[]) => plans.map((plan) => ({ value: plan, label: plan }));

function newAccount(plans: string[], changed: () => void) {
  let made: AccountMade | undefined;
  openDialog((close) => (
    <Dialog title={words.new} onClose={close}>
      <Form
        action={async (values) => {
          const text = (name: string) => String(values.get(name) ?? "").trim() || undefined;
          made = await api.post<AccountMade>(PATH, {
            name: text("name"),
            plan: text("plan"),
            username: text("username"),
          });
          close();
        }}
      >
        <TextField label={all.name} name="name" hint={words.nameHint} required maxLength={120} />
        <Select label={words.plan} name="plan" choices={choices(plans)} />
        <TextField
          label={words.username}
          name="username"
          hint={words.usernameHint}
          maxLength={120}
          spellcheck={false}
          autoCapitalize="none"
        />
        <div class="dialog-actions">
          <Button onClick={close}>{all.cancel}</Button>
          <Submit>{words.make}</Submit>
        </div>
      </Form>
    </Dialog>
  )).then(() => {
    if (!made) return;
    changed();
    if (made.welcomeUrl && made.welcomeExpiresAt)
      showSecret({
        title: words.welcomeTitle,
        note: words.welcomeNote(formatDateTime(new Date(made.welcomeExpiresAt))),
        fields: [{ label: words.welcome, value: made.welcomeUrl }],
      });
  });
}

function changePlan(row: Row, changed: () => void) {
  openDialog((close) => (
    <Dialog title={<Name>{words.changeTitle(row.name)}</Name>} onClose={close}>
      <Form
        action={async (values) => {
          await api.patch(`${PATH}/${row.id}`, { plan: String(values.get("plan")) });
          changed();
          close();
        }}
      >
        <Select
          label={words.plan}
          name="plan"
          hint={words.changeNote}
          choices={choices(row.plans)}
          defaultValue={row.plan}
        />
        <div class="dialog-actions">
          <Button onClick={close}>{all.cancel}</Button>
          <Submit>{words.save}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}
