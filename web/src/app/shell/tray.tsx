/** The place bottom right for uploads and work in progress; it lasts over changes of screen. */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";

const entries = signal<{ name: string; component: ComponentType }[]>([]);

/** Puts a component into the tray, once for each name; returns its removal. */
export function showInTray(name: string, component: ComponentType): () => void {
  const remove = () => {
    entries.value = entries.value.filter((entry) => entry.name !== name);
  };
  if (!entries.peek().some((entry) => entry.name === name))
    entries.value = [...entries.peek(), { name, component }];
  return remove;
}

export function Tray() {
  const place = useRef<HTMLElement>(null);
  const isShown = entries.value.length > 0;
  useEffect(() => {
    // The page keeps so much room free at its end that nothing lies under the tray.
    const root = document.documentElement;
    const element = place.current;
    if (!element) return root.style.removeProperty("--tray") as unknown as undefined;
    const observer = new ResizeObserver(() => root.style.setProperty("--tray", `${element.offsetHeight}px`));
    observer.observe(element);
    return () => {
      observer.disconnect();
      root.style.removeProperty("--tray");
    };
  }, [isShown]);
  if (!isShown) return null;
  return (
    <aside class="tray" ref={place} aria-label="In progress">
      {entries.value.map(({ name, component: Entry }) => (
        <Entry key={name} />
      ))}
    </aside>
  );
}
