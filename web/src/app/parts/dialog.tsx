/** Dialogs: the browser's own `<dialog>`, which keeps the focus inside and gives it back at the end. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, Submit } from "./button";
import { CopyField } from "./copy";
import { Form, TextField } from "./form";
import { Icon } from "./icon";

interface DialogProps {
  title: ComponentChildren;
  /** Esc, the cross, and a click beside it, unless `firm`. */
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
  /** It ends only by one of its own buttons. */
  firm?: boolean;
}

/** What has the focus at first: the first field, else the first of the actions, which is the harmless one. */
const FIELDS = ":is(input, select, textarea):not([tabindex='-1'], [type='radio']:not(:checked))";
const ACTIONS = ".dialog-actions > :is(button, a)";

export function Dialog({ title, onClose, children, wide, firm }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element) show(element);
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc does the same, by the browser
    <dialog
      ref={dialog}
      class={`dialog ${wide ? "dialog-wide" : ""}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!firm) onClose();
      }}
      // Some browsers close it all the same at the second Esc.
      onClose={() => dialog.current?.isConnected && (firm ? show(dialog.current) : onClose())}
      onClick={(event) => !firm && leaves(event.target as Element) && onClose()}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          {!firm && (
            <button type="button" class="btn btn-quiet btn-icon" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Whether a click ends a dialog: beside it, or on a link to another screen, which it would cover. */
const leaves = (target: Element) =>
  target instanceof HTMLDialogElement || target.closest("a[href]:not([target], [download])") !== null;

function show(dialog: HTMLDialogElement) {
  dialog.showModal();
  (dialog.querySelector<HTMLElement>(FIELDS) ?? dialog.querySelector<HTMLElement>(ACTIONS))?.focus();
}

type Opened = (close: () => void) => ComponentChildren;
const opened = signal<{ key: number; draw: Opened; close: () => void }[]>([]);
let count = 0;

/** Opens a dialog from an event handler: `openDialog((close) => <Dialog title="…" onClose={close}>…</Dialog>)`. Resolves when it is closed. */
export function openDialog(draw: Opened): Promise<void> {
  return new Promise((resolve) => {
    const key = ++count;
    const close = () => {
      opened.value = opened.value.filter((dialog) => dialog.key !== key);
      resolve();
    };
    opened.value = [...opened.value, { key, draw, close }];
  });
}

/** Where the dialogs of `openDialog` are drawn; the shell has it once. */
export function Dialogs() {
  return (
    <>
      {opened.value.map(({ key, draw, close }) => (
        <Opened key={key} draw={draw} close={close} />
      ))}
    </>
  );
}

function Opened({ draw, close }: { draw: Opened; close: () => void }) {
  return <>{draw(close)}</>;
}

interface Question {
  title: ComponentChildren;
  /** What breaks, with numbers: viewers now, files, links. */
  body: ComponentChildren;
  /** The verb on the button: "Delete 12 files". */
  verb: string;
  /** To be typed first: for what takes more than 20 things with it. */
  typed?: string;
  /** False for acts that take nothing away. */
  danger?: boolean;
  /** Done while the dialog is open; its error is shown there. */
  action?: () => Promise<unknown>;
}

/** Asks before a dangerous act; resolves with whether it was confirmed (and `action` done). */
export async function ask(question: Question): Promise<boolean> {
  let confirmed = false;
  await openDialog((close) => (
    <ConfirmDialog
      {...question}
      onClose={close}
      onConfirm={() => {
        confirmed = true;
        close();
      }}
    />
  ));
  return confirmed;
}

function ConfirmDialog({
  title,
  body,
  verb,
  typed,
  danger = true,
  action,
  onClose,
  onConfirm,
}: Question & { onClose: () => void; onConfirm: () => void }) {
  const [text, setText] = useState("");
  const isMissing = typed !== undefined && text.trim() !== typed.trim();
  const confirm = async () => {
    if (isMissing) return;
    await action?.();
    onConfirm();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <Form action={confirm}>
        <div class="prose">{body}</div>
        {typed !== undefined && (
          <TextField
            label={`Type “${typed}” to confirm`}
            name="confirmation"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <fieldset disabled={isMissing} class="plain-fieldset">
            <Submit look={danger ? "danger" : "solid"}>{verb}</Submit>
          </fieldset>
        </div>
      </Form>
    </Dialog>
  );
}

/** Shows a secret that cannot be had again: it is in the page only while this is open. */
export function showSecret(secret: {
  title: string;
  note: ComponentChildren;
  fields: { label: string; value: string }[];
}): Promise<void> {
  return openDialog((close) => (
    <Dialog title={secret.title} onClose={close} firm>
      <div class="prose">{secret.note}</div>
      {secret.fields.map((field) => (
        <CopyField key={field.label} label={field.label} value={field.value} />
      ))}
      <div class="dialog-actions">
        <Button look="solid" onClick={close}>
          I have kept it
        </Button>
      </div>
    </Dialog>
  ));
}
