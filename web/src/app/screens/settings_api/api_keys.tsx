/** Keys of programs that call the API. */
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog, showSecret } from "../../parts/dialog";
import { Form, Select, TextField } from "../../parts/form";
import { Badge } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { curl, KeyList, revoke, useKeys, useNew } from "./key_list";
import type { ApiKey } from "./types";
import { words } from "./words";

const PATH = "/api/keys";

export function ApiKeys() {
  const keys = useKeys<ApiKey>(PATH, "api_key");
  const make = () => newKey(keys.reload);
  useNew(make, can("admin"));
  return (
    <KeyList
      of={keys}
      about={words.api.about}
      empty={{
        title: words.api.emptyTitle,
        curl: curl(PATH, { name: "shop", scope: "write" }),
        guide: { href: "/docs", label: words.api.guide },
      }}
      action={
        <Button look="solid" icon="plus" onClick={make}>
          {words.api.new}
        </Button>
      }
    >
      {(rows) => <Table keys={rows} changed={keys.reload} />}
    </KeyList>
  );
}

function Table({ keys, changed }: { keys: ApiKey[]; changed: () => void }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.name}</th>
          <th scope="col">{words.scope}</th>
          <th scope="col">{words.prefix}</th>
          <th scope="col">{words.created}</th>
          <th scope="col">{words.used}</th>
          <th scope="col">
            <span class="visually-hidden">{words.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.id}>
            <th scope="row">
              <Name>{key.name}</Name>
            </th>
            <td data-label={words.scope}>
              <Badge tone={key.scope === "admin" ? "warn" : "calm"}>{key.scope}</Badge>
            </td>
            <td data-label={words.prefix}>
              <code>{key.keyPrefix}…</code>
            </td>
            <td data-label={words.created}>
              <Ago at={key.createdAt} />
            </td>
            <td data-label={words.used}>{key.lastUsedAt ? <Ago at={key.lastUsedAt} /> : words.never}</td>
            <td class="end">
              <Button
                small
                look="danger"
                aria-label={`${words.delete} ${key.name}`}
                onClick={() => revoke(`${PATH}/${key.id}`, words.api).then((done) => done && changed())}
              >
                {words.delete}
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function newKey(changed: () => void) {
  let token: string | undefined;
  openDialog((close) => (
    <Dialog title={words.api.new} onClose={close}>
      <Form
        action={async (values) => {
          const body = { name: String(values.get("name")) || undefined, scope: values.get("scope") };
          token = (await api.post<{ token: string }>(PATH, body)).token;
          close();
        }}
      >
        <TextField label={words.name} name="name" hint={words.api.nameHint} maxLength={120} />
        <Select
          label={words.scope}
          name="scope"
          value="write"
          choices={Object.entries(words.api.scopes).map(([value, label]) => ({ value, label }))}
        />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.make}</Submit>
        </div>
      </Form>
    </Dialog>
  )).then(async () => {
    if (!token) return;
    changed();
    const fields = [{ label: words.api.label, value: token }];
    token = undefined;
    await showSecret({ title: words.api.new, note: words.api.shown, fields });
  });
}
