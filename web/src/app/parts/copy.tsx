/** Copying, also where the page came by plain HTTP and the browser gives it no clipboard. */
import { useId, useRef, useState } from "preact/hooks";
import { announce } from "../shell/toasts";
import { Icon } from "./icon";

/** Copies by the clipboard, else by a selected field. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not permitted: the field below may do.
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "visually-hidden";
  // Inside of a modal dialog nothing else of the page can hold the selection.
  const place = document.activeElement?.closest("dialog") ?? document.body;
  const focused = document.activeElement as HTMLElement | null;
  place.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return copied;
}

/** A button that copies `value`; `what` names it to screen readers: "stream key". */
export function CopyButton({ value, what, text = false }: { value: string; what: string; text?: boolean }) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  const copy = async () => {
    const copied = await copyText(value);
    setState(copied ? "copied" : "failed");
    announce(copied ? `Copied: ${what}` : "Not copied: select the text and copy it");
    setTimeout(() => setState("idle"), 2_000);
  };
  return (
    <button
      type="button"
      class={`btn btn-plain btn-small ${text ? "" : "btn-icon"}`}
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={copy}
    >
      <Icon name={state === "copied" ? "check" : state === "failed" ? "error" : "copy"} />
      {text && (state === "copied" ? "Copied" : "Copy")}
    </button>
  );
}

interface CopyFieldProps {
  label: string;
  value: string;
  /** Several lines, in the font of code. */
  code?: boolean;
  hiddenLabel?: boolean;
}

/** Characters of a line in a narrow column. */
const LINE = 44;
const rowsOf = (text: string) =>
  text.split("\n").reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / LINE)), 0);

/** A value to be pasted elsewhere: selected as a whole at a click, with a button that copies it. */
export function CopyField({ label, value, code, hiddenLabel }: CopyFieldProps) {
  const id = useId();
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const select = () => field.current?.select();
  return (
    <div class={`copy-field ${code ? "copy-field-code" : ""}`}>
      <label for={id} class={hiddenLabel ? "visually-hidden" : undefined}>
        {label}
      </label>
      <div class="copy-line">
        {code ? (
          <textarea
            id={id}
            ref={field}
            class="input input-code"
            readOnly
            rows={Math.min(12, rowsOf(value))}
            value={value}
            onFocus={select}
            spellcheck={false}
          />
        ) : (
          <input
            id={id}
            ref={field}
            class="input input-code"
            readOnly
            value={value}
            onFocus={select}
            spellcheck={false}
          />
        )}
        <CopyButton value={value} what={label} />
      </div>
    </div>
  );
}
