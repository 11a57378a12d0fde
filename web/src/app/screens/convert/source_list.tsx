/** The files to be worked on: dropped, chosen, pasted, or stored ones. */
import { useEffect, useRef, useState } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { formatBytes } from "../../parts/format";
import { Icon, type IconName } from "../../parts/icon";
import { Section } from "../../parts/page";
import { Badge, EmptyState } from "../../parts/states";
import { Name } from "../../parts/values";
import { thumbnailOf } from "../shared/thumbnail";
import { classOf, joins, takes } from "./fields";
import type { Format, Source, Tool } from "./types";
import { words } from "./words";
import { addFiles, addStored, moveSource, removeSource, sources } from "./work";

const ICONS: Record<string, IconName> = {
  raster: "images",
  vector: "images",
  document: "book",
  video: "video",
  audio: "audio",
  archive: "archive",
};

async function fromFiles() {
  const { chooseFiles } = await import("../shared/choose_file");
  addStored(await chooseFiles({ types: "image,video,audio,document,archive" }));
}

/** Takes what is dropped anywhere on the page, or pasted outside of fields; returns whether something is over it. */
export function usePageDrop(): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!can("write")) return;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const onOver = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const onLeave = (event: DragEvent) => {
      if (!event.relatedTarget) setOver(false);
    };
    const onDrop = (event: DragEvent) => {
      setOver(false);
      if (!hasFiles(event) || !event.dataTransfer) return;
      event.preventDefault();
      take([...event.dataTransfer.files]);
    };
    const onPaste = (event: ClipboardEvent) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length > 0) take(files);
    };
    addEventListener("dragover", onOver);
    addEventListener("dragleave", onLeave);
    addEventListener("drop", onDrop);
    addEventListener("paste", onPaste);
    return () => {
      removeEventListener("dragover", onOver);
      removeEventListener("dragleave", onLeave);
      removeEventListener("drop", onDrop);
      removeEventListener("paste", onPaste);
    };
  }, []);
  return isOver;
}

const take = (files: File[]) => addFiles(files);

export function SourceList({ tool, formats }: { tool: Tool; formats: Format[] }) {
  const list = sources.value;
  const input = useRef<HTMLInputElement>(null);
  const isOver = usePageDrop();
  const mayConvert = can("write");
  const choose = () => input.current?.click();
  const buttons = mayConvert && (
    <>
      <Button look={list.length === 0 ? "solid" : "plain"} icon="upload" onClick={choose}>
        {words.choose}
      </Button>
      <Button icon="files" action={fromFiles}>
        {words.stored}
      </Button>
    </>
  );
  const inside =
    list.length === 0 ? (
      <EmptyState
        icon="convert"
        title={words.empty.title}
        action={buttons}
        curl={`curl -s '${serviceUrl()}/api/convert' \\\n  -H "Authorization: Bearer $KEY" -F file=@photo.heic -F format=webp`}
        guide={{ href: "/guides/conversions", label: words.empty.guide }}
      >
        {mayConvert ? words.empty.body : words.viewer}
      </EmptyState>
    ) : (
      <>
        {joins(tool) && list.length > 1 && <p class="soft small">{words.order}</p>}
        <ul class="rows">
          {list.map((source, i) => (
            <SourceRow
              key={source.key}
              source={source}
              isFit={takes(tool, source, formats)}
              icon={ICONS[classOf(source, formats) ?? ""] ?? "file"}
              isFirst={i === 0}
              isLast={i === list.length - 1}
              isOrdered={joins(tool) && list.length > 1}
            />
          ))}
        </ul>
        <div class="actions">
          {buttons}
          <Button
            look="quiet"
            onClick={() => {
              sources.value = [];
            }}
          >
            {words.clear}
          </Button>
        </div>
        <p class="soft small">{words.drop}</p>
      </>
    );
  return (
    <>
      <div class={`convert-files ${isOver ? "drop-over" : ""}`} data-empty={list.length === 0}>
        {list.length === 0 ? inside : <Section title={words.lead}>{inside}</Section>}
      </div>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        data-pick="sources"
        aria-label={words.choose}
        onChange={(event) => {
          take([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

interface RowProps {
  source: Source;
  icon: IconName;
  isFit: boolean;
  isOrdered: boolean;
  isFirst: boolean;
  isLast: boolean;
}

function SourceRow({ source, icon, isFit, isOrdered, isFirst, isLast }: RowProps) {
  const { key, name, size, stored } = source;
  return (
    <li class="convert-source">
      <Thumbnail source={source} icon={icon} />
      <span class="grow convert-names">
        <Name>{name}</Name>
        <span class="soft small numeric">
          {formatBytes(size)} {stored && <Badge>{words.isStored}</Badge>}{" "}
          {!isFit && <Badge tone="warn">{words.unfit}</Badge>}
        </span>
      </span>
      {isOrdered && (
        <>
          <Button
            small
            look="quiet"
            icon="up"
            label={words.up(name)}
            disabled={isFirst}
            onClick={() => moveSource(key, -1)}
          />
          <Button
            small
            look="quiet"
            icon="down"
            label={words.down(name)}
            disabled={isLast}
            onClick={() => moveSource(key, 1)}
          />
        </>
      )}
      <Button small look="quiet" icon="close" label={words.remove(name)} onClick={() => removeSource(key)} />
    </li>
  );
}

const SHOWN = /^image\/(jpeg|png|webp|gif|avif|bmp)$/;

function Thumbnail({ source: { file, stored, mime }, icon }: { source: Source; icon: IconName }) {
  const [src, setSrc] = useState<string | null>(null);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    if (stored) return setSrc(thumbnailOf(stored, 320));
    if (!file || !SHOWN.test(mime)) return;
    const url = URL.createObjectURL(file);
    setSrc(url);
    return () => URL.revokeObjectURL(url);
  }, [file, stored, mime]);
  return (
    <span class="convert-thumb">
      {src && !isBroken ? <img src={src} alt="" onError={() => setBroken(true)} /> : <Icon name={icon} />}
    </span>
  );
}
