/** Keys of the whole page, and those of the present screen, which the help lists. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asApiError } from "../api/error";
import { openPalette } from "./palette";
import { toast } from "./toasts";

export interface KeyHelp {
  keys: string[];
  does: string;
}

/** The keys of the present screen. */
export const keysOfScreen = signal<KeyHelp[]>([]);

/** Lists the keys of a screen in the help for as long as it is shown: `useKeyHelp(HELP)` with a constant. */
export function useKeyHelp(help: KeyHelp[]) {
  useEffect(() => {
    keysOfScreen.value = help;
    return () => {
      keysOfScreen.value = [];
    };
  }, [help]);
}

const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);
export const paletteKey = isMac ? "⌘ K" : "Ctrl K";

export const keysEverywhere: KeyHelp[] = [
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
      void showHelp();
    }
  });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"))
  );
}

/** Opens the help of the present screen. */
export const showHelp = () =>
  import("../screens/shared/help").then(
    ({ openHelp }) => openHelp(),
    (thrown) => toast(asApiError(thrown).message, "bad"),
  );
