/** Keys of the whole page, and the help that lists them with those of the present screen. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Dialog, openDialog } from "../parts/dialog";
import { openPalette } from "./palette";

export interface KeyHelp {
  keys: string[];
  does: string;
}

const ofScreen = signal<KeyHelp[]>([]);

/** Lists the keys of a screen in the help for as long as it is shown: `useKeyHelp(HELP)` with a constant. */
export function useKeyHelp(help: KeyHelp[]) {
  useEffect(() => {
    ofScreen.value = help;
    return () => {
      ofScreen.value = [];
    };
  }, [help]);
}

const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);
export const paletteKey = isMac ? "⌘ K" : "Ctrl K";

const EVERYWHERE: KeyHelp[] = [
  { keys: [isMac ? "⌘" : "Ctrl", "K"], does: "Search and commands" },
  { keys: ["?"], does: "This help" },
  { keys: ["Esc"], does: "Close what is open" },
];

export function startShortcuts() {
  addEventListener("keydown", (event) => {
    if (
      (event.ctrlKey || event.metaKey) &&
      !event.altKey &&
      !event.shiftKey &&
      event.key.toLowerCase() === "k"
    ) {
      event.preventDefault();
      openPalette();
    } else if (event.key === "?" && !isTyping(event.target) && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      showKeyHelp();
    }
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"))
  );
}

export function showKeyHelp() {
  openDialog((close) => (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <Keys title="Everywhere" list={EVERYWHERE} />
      {ofScreen.value.length > 0 && <Keys title="On this screen" list={ofScreen.value} />}
    </Dialog>
  ));
}

function Keys({ title, list }: { title: string; list: KeyHelp[] }) {
  return (
    <section class="stack">
      <h3>{title}</h3>
      <dl class="keys">
        {list.map(({ keys, does }) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
