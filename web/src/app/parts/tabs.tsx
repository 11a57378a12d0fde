/** Parts of a screen that have addresses of their own, and choices of few. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

export interface Tab {
  href: string;
  label: ComponentChildren;
  count?: number | undefined;
  current: boolean;
}

/** Pixels of the tab before the current one that stay in view, so that one sees that there is one. */
const TAB_BEFORE = 48;

export function Tabs({ label, items }: { label: string; items: Tab[] }) {
  const nav = useRef<HTMLElement>(null);
  const current = items.find((item) => item.current)?.href;
  // On a phone there are more than it is wide.
  useLayoutEffect(() => {
    const tab = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (nav.current && tab) nav.current.scrollLeft = tab.offsetLeft - nav.current.offsetLeft - TAB_BEFORE;
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {items.map((item) => (
        <a key={item.href} href={item.href} aria-current={item.current ? "page" : undefined}>
          {item.label}
          {item.count !== undefined && <span class="tabs-count">{item.count}</span>}
        </a>
      ))}
    </nav>
  );
}

interface SegmentedProps<T extends string> {
  label: string;
  value: T;
  choices: { value: T; label: ComponentChildren; title?: string }[];
  onChange: (value: T) => void;
}

/** One of few, in force at once. */
export function Segmented<T extends string>({ label, value, choices, onChange }: SegmentedProps<T>) {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend class="visually-hidden">{label}</legend>
      {choices.map((choice) => (
        <label key={choice.value} title={choice.title}>
          <input
            type="radio"
            class="visually-hidden"
            name={name}
            checked={choice.value === value}
            onChange={() => onChange(choice.value)}
          />
          <span>{choice.label}</span>
        </label>
      ))}
    </fieldset>
  );
}
