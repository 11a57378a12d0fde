/** Keys of image addresses. */
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Button, ButtonLink, Submit } from "../../parts/button";
import { CopyButton, CopyField } from "../../parts/copy";
import { Dialog, openDialog } from "../../parts/dialog";
import { Checkbox, Form, TextField } from "../../parts/form";
import { Badge } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { href } from "../../router";
import { curl, KeyList, revoke, useKeys, useNew } from "./key_list";
import type { DeliveryKey } from "./types";
import { words } from "./words";

const PATH = "/api/delivery-keys";

export function DeliveryKeys() {
  const keys = useKeys<DeliveryKey>(PATH, "delivery_key");
  const make = () => newKey(keys.reload);
  useNew(make, can("write"));
  return (
    <KeyList
      of={keys}
      about={words.delivery.about}
      empty={{
        title: words.delivery.emptyTitle,
        curl: curl(PATH, { name: "my site" }),
        guide: { href: "/guides/images", label: words.delivery.guide },
      }}
      action={
        can("write") && (
          <Button look="solid" icon="plus" onClick={make}>
            {words.delivery.new}
          </Button>
        )
      }
    >
      {(rows) => <Table keys={rows} changed={keys.reload} />}
    </KeyList>
  );
}

function Table({ keys, changed }: { keys: DeliveryKey[]; changed: () => void }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.name}</th>
          <th scope="col">{words.delivery.token}</th>
          <th scope="col">{words.delivery.alias}</th>
          <th scope="col">{words.used}</th>
          <th scope="col">
            <span class="visually-hidden">{words.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <Row key={key.id} item={key} changed={changed} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ item, changed }: { item: DeliveryKey; changed: () => void }) {
  return (
    <tr>
      <th scope="row">
        <Name>{item.name}</Name>
        {item.presets_only && (
          <>
            {" "}
            <Badge>{words.delivery.presetsOnly}</Badge>
          </>
        )}
      </th>
      <td data-label={words.delivery.token}>
        {item.token ? (
          <span class="key-token">
            <code>{item.token}</code> <CopyButton value={item.token} what={words.delivery.token} />
          </span>
        ) : (
          <span title={words.delivery.lost}>
            <code>{item.key_prefix}…</code>
          </span>
        )}
      </td>
      <td data-label={words.delivery.alias}>
        {item.delivery_alias ? <code>{item.delivery_alias}</code> : "–"}
      </td>
      <td data-label={words.used}>{item.last_used_at ? <Ago at={item.last_used_at} /> : words.never}</td>
      <td class="end">
        <span class="actions key-actions">
          <ButtonLink small href={href(`/images?key=${item.id}`)}>
            {words.delivery.builder}
          </ButtonLink>
          {can("write") && (
            <>
              <Button
                small
                aria-label={`${words.delivery.edit} ${item.name}`}
                onClick={() => change(item, changed)}
              >
                {words.delivery.edit}
              </Button>
              <Button
                small
                look="danger"
                aria-label={`${words.delete} ${item.name}`}
                onClick={() => revoke(`${PATH}/${item.id}`, words.delivery).then((done) => done && changed())}
              >
                {words.delete}
              </Button>
            </>
          )}
        </span>
      </td>
    </tr>
  );
}

function KeyFields({ item }: { item?: DeliveryKey }) {
  return (
    <>
      <TextField
        label={words.name}
        name="name"
        hint={words.delivery.nameHint}
        defaultValue={item?.name ?? ""}
        maxLength={120}
      />
      <TextField
        label={words.delivery.alias}
        name="alias"
        hint={words.delivery.aliasHint}
        defaultValue={item?.delivery_alias ?? ""}
        maxLength={63}
        spellcheck={false}
      />
      <Checkbox
        label={words.delivery.presetsOnly}
        hint={words.delivery.presetsHint}
        name="presetsOnly"
        defaultChecked={item?.presets_only ?? false}
      />
    </>
  );
}

const asked = (values: FormData) => ({
  name: String(values.get("name")) || undefined,
  presets_only: values.get("presetsOnly") !== null,
});

function newKey(changed: () => void) {
  let token: string | undefined;
  openDialog((close) => (
    <Dialog title={words.delivery.new} onClose={close}>
      <Form
        action={async (values) => {
          const body = { ...asked(values), alias: String(values.get("alias")) || undefined };
          token = (await api.post<{ token: string }>(PATH, body)).token;
          close();
        }}
      >
        <KeyFields />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.make}</Submit>
        </div>
      </Form>
    </Dialog>
  )).then(() => {
    if (!token) return;
    changed();
    const begin = `${serviceUrl()}/cdn/v1/${token}/`;
    openDialog((close) => (
      <Dialog title={words.delivery.madeTitle} onClose={close}>
        <CopyField label={words.delivery.made} value={begin} />
        <div class="dialog-actions">
          <Button look="solid" onClick={close}>
            OK
          </Button>
        </div>
      </Dialog>
    ));
  });
}

function change(item: DeliveryKey, changed: () => void) {
  openDialog((close) => (
    <Dialog title={<Name>{words.delivery.editTitle(item.name)}</Name>} onClose={close}>
      <Form
        action={async (values) => {
          const body = { ...asked(values), alias: String(values.get("alias")) || null };
          await api.patch(`${PATH}/${item.id}`, body);
          changed();
          close();
        }}
      >
        <KeyFields item={item} />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.save}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}
