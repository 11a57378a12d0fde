/** Ctrl-K: goes to any screen, input, folder, workflow or webhook, and begins what is done most. */
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { isAborted } from "../api/error";
import { can, type Scope } from "../api/session";
import { allWorkflows, type ListedWorkflow } from "../api/workflow_list";
import { Dialog, openDialog } from "../parts/dialog";
import { Icon, type IconName } from "../parts/icon";
import { go } from "../router";
import { furtherPlaces, isReachable, type Place, places } from "../routes";
import { showCurl } from "./curl_panel";

interface Command {
  label: string;
  note: string;
  icon: IconName;
  words?: string | undefined;
  run: () => void;
}

/** Acts: screens begin them when they find the query `new` in their address. */
const acts: (Omit<Command, "note" | "run"> & { to: string; search: Record<string, string>; scope: Scope })[] =
  [
    {
      label: "New live input",
      icon: "live",
      words: "stream create",
      to: "/live",
      search: { new: "1" },
      scope: "write",
    },
    {
      label: "Upload files",
      icon: "upload",
      words: "add",
      to: "/files",
      search: { new: "upload" },
      scope: "write",
    },
    {
      label: "New folder",
      icon: "folder_plus",
      words: "create",
      to: "/files",
      search: { new: "folder" },
      scope: "write",
    },
    {
      label: "New workflow",
      icon: "workflow",
      words: "create template",
      to: "/workflows",
      search: { new: "1" },
      scope: "write",
    },
    {
      label: "New webhook",
      icon: "webhooks",
      words: "endpoint create",
      to: "/webhooks",
      search: { new: "1" },
      scope: "write",
    },
    {
      label: "New API key",
      icon: "key",
      words: "create token",
      to: "/settings/api/keys",
      search: { new: "1" },
      scope: "admin",
    },
    {
      label: "Invite someone",
      icon: "user",
      words: "new member user invitation",
      to: "/settings/members/invitations",
      search: { new: "1" },
      scope: "admin",
    },
    {
      label: "New delivery key",
      icon: "key",
      words: "create images",
      to: "/settings/api/delivery-keys",
      search: { new: "1" },
      scope: "write",
    },
  ];

let isOpen = false;

export async function openPalette() {
  if (isOpen) return;
  isOpen = true;
  await openDialog((close) => <Palette close={close} />);
  known = undefined;
  isOpen = false;
}

function Palette({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = useFound(text.trim());
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const commands = useMemo(() => [...fixed(text), ...found], [text, found]);
  const current = Math.min(at, commands.length - 1);
  useEffect(() => list.current?.children[current]?.scrollIntoView({ block: "nearest" }), [current]);

  const choose = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && commands.length > 0) {
      event.preventDefault();
      setAt((current + step + commands.length) % commands.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(commands[current]);
    }
  };
  return (
    <Dialog title="Search and commands" onClose={close}>
      <div class="palette">
        <input
          type="text"
          class="input"
          role="combobox"
          aria-label="Go to, or do"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={commands.length ? `${id}-${current}` : undefined}
          placeholder="A screen, an input, a folder, a workflow, or what to do"
          autoComplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <div class="palette-list" role="listbox" id={id} aria-label="Found" ref={list}>
          {commands.map((command, i) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: keys are those of the field above
            <div
              key={`${command.note}/${command.label}/${i}`}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === current}
              onClick={() => choose(command)}
            >
              <Icon name={command.icon} />
              <bdi>{command.label}</bdi>
              <span class="soft">{command.note}</span>
            </div>
          ))}
        </div>
        {commands.length === 0 && <p class="soft">Nothing has this name.</p>}
      </div>
    </Dialog>
  );
}

function fixed(text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const visit = (place: Place): Command => ({ ...place, note: "Go to", run: () => go(place.to) });
  const all: Command[] = [
    ...places.filter(isReachable).map(visit),
    ...acts
      .filter((act) => can(act.scope))
      .map((act) => ({ ...act, note: "Do", run: () => go(act.to, { search: act.search }) })),
    ...furtherPlaces.filter(isReachable).map(visit),
    {
      label: "API reference",
      icon: "book",
      note: "Go to",
      words: "docs documentation",
      run: () => window.open("/docs", "_blank", "noopener"),
    },
    { label: "Show as curl", icon: "terminal", note: "Do", words: "api command", run: showCurl },
  ];
  return all.filter((command) => {
    const name = `${command.label} ${command.words ?? ""}`.toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/** Inputs, folders, workflows and webhooks whose names have the text; asked for when typing pauses. */
function useFound(text: string): Command[] {
  const [found, setFound] = useState<Command[]>([]);
  useEffect(() => {
    if (text.length < 2) return setFound([]);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      const asked = [inputs, folders, workflows, webhooks].map((search) => search(text, abort.signal));
      Promise.allSettled(asked).then((answers) => {
        if (abort.signal.aborted) return;
        setFound(
          answers.flatMap((answer) =>
            answer.status === "fulfilled" && !isAborted(answer) ? answer.value : [],
          ),
        );
      });
    }, 150);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return found;
}

const SHOWN_OF_EACH = 6;

async function inputs(q: string, signal: AbortSignal): Promise<Command[]> {
  const { liveInputs } = await api.get<{ liveInputs: { id: string; name: string }[] }>("/api/live/inputs", {
    query: { q, limit: SHOWN_OF_EACH, sort: "lastLive" },
    signal,
  });
  return liveInputs.map(({ id, name }) => ({
    label: name,
    note: "Live input",
    icon: "live",
    run: () => go(`/live/${id}`),
  }));
}

async function folders(q: string, signal: AbortSignal): Promise<Command[]> {
  const { folders } = await api.get<{ folders: { id: string; name: string }[] }>("/api/folders", {
    query: { q, limit: SHOWN_OF_EACH },
    signal,
  });
  return folders.map(({ id, name }) => ({
    label: name,
    note: "Folder",
    icon: "files",
    run: () => go(`/files/${id}`),
  }));
}

/** Read once while the palette is open. */
let known: Promise<ListedWorkflow[]> | undefined;

async function workflows(q: string): Promise<Command[]> {
  known ??= allWorkflows();
  const workflows = await known.catch((thrown) => {
    known = undefined;
    throw thrown;
  });
  const wanted = q.toLowerCase();
  return workflows
    .filter(({ name }) => name.toLowerCase().includes(wanted))
    .slice(0, SHOWN_OF_EACH)
    .map(({ id, name }) => ({
      label: name,
      note: "Workflow",
      icon: "workflow",
      run: () => go(`/workflows/${id}`),
    }));
}

async function webhooks(q: string, signal: AbortSignal): Promise<Command[]> {
  const { webhooks } = await api.get<{ webhooks: { id: string; url: string; description: string | null }[] }>(
    "/api/webhooks",
    { signal },
  );
  const wanted = q.toLowerCase();
  return webhooks
    .filter((each) => `${each.url} ${each.description ?? ""}`.toLowerCase().includes(wanted))
    .slice(0, SHOWN_OF_EACH)
    .map(({ id, url }) => ({
      label: url,
      note: "Webhook",
      icon: "webhooks",
      run: () => go("/webhooks", { search: { id } }),
    }));
}
