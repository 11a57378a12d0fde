/** A button that opens a list of actions. */
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import type { Look } from "./button";
import { Icon, type IconName } from "./icon";

export interface MenuItem {
  label: ComponentChildren;
  icon?: IconName;
  danger?: boolean;
  disabled?: boolean;
  /** Either goes to an address… */
  href?: string;
  /** …or does something. */
  onSelect?: () => void;
}

interface MenuProps {
  label: string;
  items: (MenuItem | false | null | undefined)[];
  /** In place of "⋯". */
  button?: ComponentChildren;
  look?: Look;
  small?: boolean;
  /** −1: not by Tab, for rows that have keys of their own. */
  tabIndex?: number;
  class?: string;
}

export function Menu({
  label,
  items,
  button,
  look = "plain",
  small,
  tabIndex,
  class: extra = "",
}: MenuProps) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const shown = items.filter((item): item is MenuItem => Boolean(item));

  const entries = () => [
    ...(list.current?.querySelectorAll<HTMLElement>('[role="menuitem"]:not([aria-disabled])') ?? []),
  ];
  const place = () => {
    if (!list.current || !opener.current) return;
    const anchor = opener.current.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = list.current;
    const isBelow = anchor.bottom + height + 12 < innerHeight || anchor.top < height;
    list.current.style.top = `${Math.max(8, isBelow ? anchor.bottom + 4 : anchor.top - height - 4)}px`;
    list.current.style.left = `${Math.max(8, Math.min(anchor.right - width, innerWidth - width - 8))}px`;
  };
  const onToggle = (event: { newState: string }) => {
    const opens = event.newState === "open";
    setOpen(opens);
    if (opens) {
      place();
      entries()[0]?.focus();
    }
  };
  const close = () => list.current?.hidePopover();
  const onKeyDown = (event: KeyboardEvent) => {
    const all = entries();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      all[to % all.length]?.focus();
    } else if (event.key === "Tab") close();
    else if (event.key === "Escape") {
      event.stopPropagation();
      close();
      opener.current?.focus();
    }
  };
  return (
    <>
      <button
        type="button"
        ref={opener}
        class={`btn ${button ? `btn-${look}` : "btn-quiet btn-icon"} ${small ? "btn-small" : ""} ${extra}`}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={button ? undefined : label}
        title={button ? undefined : label}
        popoverTarget={id}
        tabIndex={tabIndex}
      >
        {button ?? <Icon name="more" />}
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        class="menu"
        role="menu"
        aria-label={label}
        onToggle={onToggle}
        onKeyDown={onKeyDown}
      >
        {shown.map((item, i) => (
          // The items of a menu keep their places
          <Entry key={i} item={item} close={close} />
        ))}
      </div>
    </>
  );
}

function Entry({ item, close }: { item: MenuItem; close: () => void }) {
  const inside = (
    <>
      {item.icon && <Icon name={item.icon} />}
      <span>{item.label}</span>
    </>
  );
  const look = `menu-item ${item.danger ? "menu-danger" : ""}`;
  if (item.href)
    return (
      <a role="menuitem" tabIndex={-1} class={look} href={item.href} onClick={close}>
        {inside}
      </a>
    );
  const select = () => {
    if (item.disabled) return;
    close();
    item.onSelect?.();
  };
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      class={look}
      aria-disabled={item.disabled || undefined}
      onClick={select}
    >
      {inside}
    </button>
  );
}
