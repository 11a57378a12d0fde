/** The tree of folders; what is below a folder is loaded when it is opened. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Kind } from "../../api/changes";
import { api } from "../../api/client";
import { reconnections } from "../../api/connection";
import { Icon } from "../../parts/icon";
import { type DropActs, dropInto } from "./drag";
import { useRefresh } from "./refresh";
import type { FolderRecord, FolderRef } from "./types";
import { words } from "./words";

interface TreeProps {
  current: string | null;
  /** The way to the present folder, which is opened. */
  ancestors: FolderRef[];
  onChoose: (id: string | null) => void;
  drops?: DropActs | null;
  /** Not shown, with all that is below: a folder is not moved into itself. */
  hidden?: string | undefined;
}

/** The top is a folder without id. */
const TOP = "";
const KINDS: Kind[] = ["folder", "share"];

interface Node {
  id: string | null;
  name: string;
  level: number;
  isOpen: boolean;
  isOpenable: boolean;
  shared: boolean;
}

export function FolderTree({ current, ancestors, onChoose, drops = null, hidden }: TreeProps) {
  const [children, setChildren] = useState<ReadonlyMap<string, FolderRecord[]>>(new Map());
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set([TOP]));
  const [active, setActive] = useState<string | null>(current);
  const list = useRef<HTMLDivElement>(null);
  const wanted = useRef(open);
  wanted.current = open;

  const requested = useRef(new Set<string>()).current;
  const load = (ids: Iterable<string>) => {
    for (const id of ids) {
      api
        .get<{ folders: FolderRecord[] }>("/api/folders", { query: { parentId: id || "null", sort: "name" } })
        .then(({ folders }) => setChildren((before) => new Map(before).set(id, folders)))
        .catch(() => requested.delete(id));
    }
  };
  const way = ancestors.map(({ id }) => id).join();
  useEffect(() => {
    setOpen((before) => new Set([...before, TOP, ...way.split(",").filter(Boolean)]));
    setActive(current);
  }, [way, current]);
  useEffect(() => {
    const unloaded = [...open].filter((id) => !requested.has(id));
    for (const id of unloaded) requested.add(id);
    load(unloaded);
  }, [open]);
  useEffect(() => {
    if (reconnections.value > 0) load(wanted.current);
  }, [reconnections.value]);
  useRefresh(KINDS, () => load(wanted.current));

  const nodes = nodesOf(children, open, hidden);
  const at = Math.max(
    0,
    nodes.findIndex((node) => node.id === active),
  );
  const toggle = ({ id }: Node, opens: boolean) => {
    const next = new Set(open);
    if (opens) next.add(id ?? TOP);
    else next.delete(id ?? TOP);
    setOpen(next);
  };
  const focus = (node: Node | undefined) => {
    if (!node) return;
    setActive(node.id);
    list.current?.querySelector<HTMLElement>(`[data-node="${node.id ?? ""}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Of the focused item, since the next key may come before what the last one changed is drawn.
    const focused = event.target instanceof HTMLElement ? event.target.dataset.node : undefined;
    const at = nodes.findIndex(({ id }) => (id ?? "") === focused);
    const node = nodes[at];
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const parent = () =>
      nodes
        .slice(0, at)
        .reverse()
        .find((other) => other.level < node.level);
    const act: Record<string, () => void> = {
      ArrowDown: () => focus(nodes[at + 1]),
      ArrowUp: () => focus(nodes[at - 1]),
      Home: () => focus(nodes[0]),
      End: () => focus(nodes.at(-1)),
      ArrowRight: () => (node.isOpenable && !node.isOpen ? toggle(node, true) : focus(nodes[at + 1])),
      ArrowLeft: () => (node.isOpen && node.id !== null ? toggle(node, false) : focus(parent())),
      Enter: () => onChoose(node.id),
      " ": () => onChoose(node.id),
    };
    const does = act[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  };
  return (
    <div class="tree" role="tree" aria-label={words.tree} ref={list} onKeyDown={onKeyDown}>
      {nodes.map((node, i) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: keys are those of the tree
        <div
          key={node.id ?? TOP}
          role="treeitem"
          class="tree-item"
          data-node={node.id ?? ""}
          aria-level={node.level}
          aria-expanded={node.isOpenable ? node.isOpen : undefined}
          aria-selected={node.id === current}
          tabIndex={i === at ? 0 : -1}
          style={{ "--level": String(node.level - 1) }}
          onClick={() => {
            setActive(node.id);
            onChoose(node.id);
          }}
          {...dropInto(node.id, drops)}
        >
          <span
            class="tree-toggle"
            aria-hidden="true"
            onClick={(event) => {
              if (!node.isOpenable || node.id === null) return;
              event.stopPropagation();
              toggle(node, !node.isOpen);
            }}
          >
            {node.isOpenable && node.id !== null && <Icon name={node.isOpen ? "down" : "right"} />}
          </span>
          <bdi class="one-line" title={node.name}>
            {node.name}
          </bdi>
          {node.shared && <Icon name="link" />}
        </div>
      ))}
    </div>
  );
}

/** What is seen of the tree, from top to bottom. */
function nodesOf(
  children: ReadonlyMap<string, FolderRecord[]>,
  open: ReadonlySet<string>,
  hidden: string | undefined,
): Node[] {
  const nodes: Node[] = [
    { id: null, name: words.all, level: 1, isOpen: true, isOpenable: true, shared: false },
  ];
  const add = (parent: string, level: number) => {
    for (const folder of children.get(parent) ?? []) {
      if (folder.id === hidden) continue;
      const isOpen = folder.has_children && open.has(folder.id);
      nodes.push({
        id: folder.id,
        name: folder.name,
        level,
        isOpen,
        isOpenable: folder.has_children,
        shared: folder.shared,
      });
      if (isOpen && level < 101) add(folder.id, level + 1);
    }
  };
  add(TOP, 2);
  return nodes;
}
