/** Buttons and what looks like them. */
import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useContext, useState } from "preact/hooks";
import { offlineSince } from "../api/connection";
import { asApiError, isAborted } from "../api/error";
import { toast } from "../shell/toasts";
import { FormContext } from "./form";
import { Icon, type IconName } from "./icon";

export type Look = "solid" | "plain" | "quiet" | "danger";

interface ButtonProps {
  children?: ComponentChildren;
  look?: Look;
  icon?: IconName;
  /** For a button that shows only its icon. */
  label?: string;
  small?: boolean;
  disabled?: boolean;
  /** -1 for what a key of the list around it does as well. */
  tabIndex?: number;
  /** At once, in this tab. */
  onClick?: (event: TargetedMouseEvent<HTMLButtonElement>) => void;
  /** Asks the service: busy until it ends, an error becomes a toast; disabled without connection. */
  action?: () => Promise<unknown>;
  class?: string;
  [attribute: `aria-${string}`]: string | boolean | undefined;
  [attribute: `data-${string}`]: string | undefined;
}

export function Button({
  children,
  look = "plain",
  icon,
  label,
  small,
  disabled,
  onClick,
  action,
  class: extra = "",
  ...rest
}: ButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const isOff = disabled || isBusy || (action !== undefined && offlineSince.value !== null);
  const run = async (event: TargetedMouseEvent<HTMLButtonElement>) => {
    if (isOff) return event.preventDefault();
    onClick?.(event);
    if (!action) return;
    setBusy(true);
    try {
      await action();
    } catch (thrown) {
      if (!isAborted(thrown)) toast(asApiError(thrown).message, "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <button
      type="button"
      aria-label={label}
      {...rest}
      class={`btn btn-${look} ${small ? "btn-small" : ""} ${children ? "" : "btn-icon"} ${extra}`}
      title={children ? undefined : label}
      aria-disabled={isOff || undefined}
      aria-busy={isBusy || undefined}
      onClick={run}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Sends the form around it. */
export function Submit({
  children,
  look = "solid",
  icon,
}: {
  children: ComponentChildren;
  look?: Look;
  icon?: IconName;
}) {
  const form = useContext(FormContext);
  const isOff = form.isBusy || offlineSince.value !== null;
  return (
    <button
      type="submit"
      class={`btn btn-${look}`}
      aria-disabled={isOff || undefined}
      aria-busy={form.isBusy || undefined}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface ButtonLinkProps {
  href: string;
  children: ComponentChildren;
  look?: Look;
  icon?: IconName;
  small?: boolean;
  download?: boolean | string;
  target?: string;
}

export function ButtonLink({ href, children, look = "plain", icon, small, ...rest }: ButtonLinkProps) {
  return (
    <a
      {...rest}
      href={href}
      rel={rest.target ? "noopener" : undefined}
      class={`btn btn-${look} ${small ? "btn-small" : ""}`}
    >
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}
