/** "Show as curl": what the user did last and what the screen shows, as commands. */
import { asCurl, changesMade, reads } from "../api/calls";
import { CopyField } from "../parts/copy";
import { Dialog, openDialog } from "../parts/dialog";
import type { MenuItem } from "../parts/menu";

/** For menus of actions. */
export const curlItem: MenuItem = { label: "Show as curl", icon: "terminal", onSelect: () => showCurl() };

export function showCurl() {
  openDialog((close) => (
    <Dialog title="Show as curl" onClose={close} wide>
      <p class="soft">
        Put an API key into your shell first: <code>export KEY=svc_…</code>
      </p>
      <Calls
        title="What you did last"
        calls={changesMade.value}
        none="Nothing has been changed in this tab yet."
      />
      <Calls title="What this screen reads" calls={reads.value} none="This screen reads nothing." />
    </Dialog>
  ));
}

function Calls({ title, calls, none }: { title: string; calls: typeof reads.value; none: string }) {
  return (
    <section class="stack">
      <h3>{title}</h3>
      {calls.length === 0 && <p class="soft">{none}</p>}
      {calls.map((call) => {
        const command = asCurl(call, location.origin);
        return (
          <CopyField key={command} label={`${call.method} ${call.path.split("?")[0]}`} value={command} code />
        );
      })}
    </section>
  );
}
