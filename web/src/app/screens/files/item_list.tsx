/** Folders and files as a grid of images or as a list: of any number, by keys, by mouse, by touch. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatDuration } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { Ago, Bytes, Name } from "../../parts/values";
import { VirtualList } from "../../parts/virtual_list";
import { go, setQuery } from "../../router";
import { thumbnailOf } from "../shared/thumbnail";
import { chooseAllOf } from "./choosing";
import { beginDrag, type DropActs, dropInto, endDrag } from "./drag";
import { endingOf, ICONS, kindOf } from "./kinds";
import { anchoredAt, MOST_CHOSEN, NONE, type Selection, toggled, withRange } from "./selection";
import type { FileRecord, Item } from "./types";
import { type Beginning, filesBetween, keyOf, loadItems, PAGE } from "./view";
import { words } from "./words";

interface ItemListProps {
  beginning: Beginning;
  revision: number;
  look: string;
  openId: string | null;
  selection: Selection;
  setSelection: (next: (before: Selection) => Selection) => void;
  drops: DropActs | null;
}

const CELL_PX = 160;
const CELL_HEIGHT_PX = 184;
const isTouch = () => matchMedia("(pointer: coarse)").matches;

export function ItemList(props: ItemListProps) {
  const { beginning, look, openId, selection, setSelection, drops } = props;
  const place = useRef<HTMLDivElement>(null);
  const columns = useColumns(place, look);
  const lookup = useRef<(index: number) => Item | undefined>(() => undefined);
  const total = beginning.folders.length + beginning.total;

  const chooseTo = async (anchor: number, index: number) => {
    const [first, last] = [Math.min(anchor, index), Math.max(anchor, index)];
    const loaded = rangeOf(lookup.current, first, last);
    const range = loaded ?? (await filesBetween(beginning, first, last, MOST_CHOSEN));
    setSelection((before) => withRange(before, range));
  };
  const chooseAll = async () => {
    const all = await chooseAllOf(beginning);
    setSelection(() => all);
  };
  const open = (item: Item) => {
    if (item.folder) go(`/files/${item.folder.id}`);
    else setQuery({ file: item.file.id });
  };

  const onPointer = (event: MouseEvent, item: Item, index: number) => {
    if (item.folder) return open(item);
    if (event.shiftKey) return void chooseTo(selection.anchor, index);
    if (event.ctrlKey || event.metaKey) return setSelection((before) => toggled(before, item.file, index));
    setSelection((before) => anchoredAt(before, index));
    open(item);
  };
  const onActive = (index: number, event: KeyboardEvent, item: Item | undefined) => {
    if (event.shiftKey) return void chooseTo(selection.anchor, index);
    setSelection((before) => anchoredAt(before, index));
    if (openId && item?.file && matchMedia("(min-width: 64rem)").matches) setQuery({ file: item.file.id });
  };
  const onKey = (event: KeyboardEvent, item: Item | undefined, index: number) => {
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) {
      if (key !== "a") return;
      void chooseAll();
    } else if (key === "/") document.querySelector<HTMLElement>(".files-toolbar [type=search]")?.focus();
    else if (key === "escape") {
      if (openId) setQuery({ file: undefined });
      else setSelection(() => NONE);
    } else if (!item) return;
    else if (key === " ") {
      if (item.folder) open(item);
      else setQuery({ file: openId === item.file.id ? undefined : item.file.id });
    } else if (key === "x" && item.file) setSelection((before) => toggled(before, item.file, index));
    else if ((key === "f2" || key === "delete") && drops) actOn(key, item, selection);
    else return;
    event.preventDefault();
  };

  return (
    <div class="files-list" ref={place}>
      <VirtualList<Item>
        label={words.list}
        total={total}
        columns={columns}
        rowHeight={look === "grid" ? CELL_HEIGHT_PX : isTouch() ? 52 : 44}
        overscan={look === "grid" ? 1 : 4}
        pageSize={PAGE}
        query={`${keyOf(beginning.view)}${columns > 1}`}
        revision={props.revision}
        lookup={lookup}
        load={(offset, limit, signal) => loadItems(beginning, offset, limit, signal)}
        isSelected={(item) => item.file !== undefined && selection.files.has(item.file.id)}
        onOpen={open}
        onKey={onKey}
        onActive={onActive}
        onPointer={onPointer}
        itemProps={(item) => ({
          class: item?.file && item.file.id === openId ? "is-open" : "",
          ...(item && drops ? dragOf(item, selection) : {}),
          ...(item?.folder ? dropInto(item.folder.id, drops) : {}),
        })}
        head={
          look === "list" && (
            <>
              <span role="columnheader">{words.columns.name}</span>
              <span role="columnheader">{words.columns.shape}</span>
              <span role="columnheader">{words.columns.size}</span>
              <span role="columnheader">{words.columns.created}</span>
            </>
          )
        }
      >
        {(item, index) => {
          const choice = item?.file && (
            <Choice
              file={item.file}
              checked={selection.files.has(item.file.id)}
              choose={(file) => setSelection((before) => toggled(before, file, index))}
            />
          );
          return look === "grid" ? <Cell item={item} choice={choice} /> : <Row item={item} choice={choice} />;
        }}
      </VirtualList>
    </div>
  );
}

/** The files of a range, when all of them are loaded. */
function rangeOf(lookup: (index: number) => Item | undefined, first: number, last: number) {
  const files: FileRecord[] = [];
  for (let i = first; i <= last; i++) {
    const item = lookup(i);
    if (!item) return null;
    if (item.file) files.push(item.file);
  }
  return files;
}

async function actOn(key: string, item: Item, selection: Selection) {
  const acts = await import("./acts");
  if (key === "f2") return item.folder ? acts.renameFolder(item.folder) : acts.renameFile(item.file);
  if (item.folder) return acts.deleteFolder(item.folder);
  return acts.deleteFiles(selection.files.has(item.file.id) ? [...selection.files.values()] : [item.file]);
}

/** What is dragged is the selection, when the item is a part of it. */
function dragOf(item: Item, selection: Selection) {
  return {
    draggable: true,
    onDragStart: (event: DragEvent) => {
      if (item.folder) beginDrag(event, { files: [], folder: item.folder });
      else if (selection.files.has(item.file.id)) beginDrag(event, { files: [...selection.files.values()] });
      else beginDrag(event, { files: [item.file] });
    },
    onDragEnd: endDrag,
  };
}

function useColumns(place: { current: HTMLElement | null }, look: string): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return look === "grid" ? Math.max(2, Math.floor(width / CELL_PX)) : 1;
}

interface ChoiceProps {
  file: FileRecord;
  checked: boolean;
  choose: (file: FileRecord) => void;
}

function Choice({ file, checked, choose }: ChoiceProps) {
  return (
    <input
      type="checkbox"
      class="check files-check"
      tabIndex={-1}
      checked={checked}
      aria-label={words.choose(file.filename)}
      onClick={(event) => {
        event.stopPropagation();
        choose(file);
      }}
    />
  );
}

interface ItemProps {
  item: Item | undefined;
  choice: preact.ComponentChildren;
}

function Cell({ item, choice }: ItemProps) {
  if (!item) return <span class="files-thumb skeleton-row" />;
  const name = item.folder ? item.folder.name : item.file.filename;
  return (
    <>
      {item.folder ? (
        <span class="files-thumb files-thumb-folder">
          <Icon name="files" class="icon-l" />
          {item.folder.shared && <SharedMark />}
        </span>
      ) : (
        <Thumb file={item.file} />
      )}
      {choice}
      <bdi class="one-line" title={name}>
        {name}
      </bdi>
      {item.file && (
        <span class="soft one-line">
          <Bytes value={item.file.size_bytes} />
        </span>
      )}
    </>
  );
}

function Row({ item, choice }: ItemProps) {
  if (!item) return <span role="gridcell" class="skeleton-row" aria-label="…" />;
  const { folder, file } = item;
  return (
    <>
      <span role="gridcell" class="files-name">
        {choice}
        {file ? <Thumb file={file} small /> : <Icon name="files" />}
        <Name class="one-line">{folder ? folder.name : file.filename}</Name>
        {folder?.shared && <SharedMark />}
      </span>
      <span role="gridcell" class="soft">
        {file && shapeOf(file)}
      </span>
      <span role="gridcell">{file && <Bytes value={file.size_bytes} />}</span>
      <span role="gridcell" class="soft">
        {file && <Ago at={file.created_at} />}
      </span>
    </>
  );
}

function SharedMark() {
  return (
    <span class="files-shared" title={words.shareOf}>
      <Icon name="link" />
      <span class="visually-hidden">{words.shareOf}</span>
    </span>
  );
}

export function shapeOf({ width, height, duration }: FileRecord): string {
  const size = width && height ? `${width} × ${height}` : "";
  const time = duration ? formatDuration(duration * 1_000) : "";
  return [size, time].filter(Boolean).join(" · ");
}

/** The image of a file, or the icon of its kind. */
function Thumb({ file, small }: { file: FileRecord; small?: boolean }) {
  const src = thumbnailOf(file, 320);
  const [broken, setBroken] = useState<string | null>(null);
  const kind = kindOf(file.mime_type);
  return (
    <span class={`files-thumb ${small ? "files-thumb-small" : ""}`}>
      {src && src !== broken ? (
        <img
          src={src}
          alt=""
          loading="lazy"
          decoding="async"
          draggable={false}
          onError={() => setBroken(src)}
        />
      ) : (
        <>
          <Icon name={ICONS[kind]} class={small ? "" : "icon-l"} />
          {!small && <span class="files-ending">{endingOf(file.filename)}</span>}
        </>
      )}
      {!small && kind === "video" && (
        <span class="files-length">
          <Icon name="play" />
          {file.duration ? formatDuration(file.duration * 1_000) : ""}
        </span>
      )}
    </span>
  );
}
