/** A file looked at: its image or player, its facts, and what can be done with it. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Button, ButtonLink, Submit } from "../../parts/button";
import { copyText } from "../../parts/copy";
import { Form, TextField } from "../../parts/form";
import { formatBits, formatNumber } from "../../parts/format";
import { Menu } from "../../parts/menu";
import { Badge } from "../../parts/states";
import { Bytes, Name, Time } from "../../parts/values";
import { go, href } from "../../router";
import { showCurl } from "../../shell/curl_panel";
import { toast } from "../../shell/toasts";
import { shapeOf } from "./item_list";
import { bytesOf, kindOf } from "./kinds";
import { paneWords as words } from "./pane_words";
import { Stage } from "./stage";
import { tagsOf } from "./tags";
import type { FileDetail, FileRecord } from "./types";
import { words as listWords } from "./words";

export interface PaneProps {
  file: FileDetail;
  /** Takes what a change answered. */
  set: (next: Partial<FileDetail>) => void;
  /** It is deleted. */
  gone: () => void;
}

const acts = () => import("./acts");

export function Pane({ file, set, gone }: PaneProps) {
  const mayWrite = can("write");
  const isPicture = kindOf(file.mime_type) === "image";
  const copyLink = async () => {
    // A fresh address: the record's own ends five minutes after it was read
    const { file: fresh } = await api.get<{ file: FileRecord }>(`/api/files/${file.id}`);
    const copied = await copyText(fresh.download_url);
    toast(copied ? words.linkCopied : fresh.download_url, copied ? "good" : "bad");
  };
  return (
    <div class="pane">
      <Stage key={file.id} file={file} set={set} />
      <div class="actions">
        <ButtonLink small href={bytesOf(file)} icon="download" download={file.filename}>
          {listWords.download}
        </ButtonLink>
        {isPicture && file.preview_url && (
          <ButtonLink small href={href("/images", { file: file.id })} icon="code">
            {words.imageAddress}
          </ButtonLink>
        )}
        <Menu
          small
          label={words.more}
          items={[
            { label: words.copyLink, icon: "link", onSelect: copyLink },
            mayWrite && {
              label: listWords.rename,
              icon: "edit",
              onSelect: () => acts().then((module) => module.renameFile(file)),
            },
            mayWrite && {
              label: listWords.move,
              icon: "move",
              onSelect: () => acts().then((module) => module.moveFiles([file])),
            },
            mayWrite && {
              label: listWords.convert,
              icon: "images",
              onSelect: () => acts().then((module) => module.convert([file], file.folder_id)),
            },
            mayWrite && { label: words.tools, icon: "convert", href: href("/convert", { file: file.id }) },
            mayWrite &&
              /^(video|audio)\//.test(file.mime_type) && {
                label: words.stream,
                icon: "video",
                href: href("/streams", { new: "1", file: file.id }),
              },
            mayWrite && {
              label: listWords.run,
              icon: "workflow",
              onSelect: () => acts().then((module) => module.runWorkflow([file])),
            },
            { label: listWords.curl, icon: "terminal", onSelect: showCurl },
            mayWrite && {
              label: listWords.remove,
              icon: "trash",
              danger: true,
              onSelect: () =>
                acts()
                  .then((module) => module.deleteFiles([file]))
                  .then((ids) => ids && gone()),
            },
          ]}
        />
      </div>
      <Facts file={file} />
      <Tags key={file.tags.join()} file={file} set={set} mayWrite={mayWrite} />
    </div>
  );
}

function Facts({ file }: { file: FileDetail }) {
  const media = file.media;
  const video = media && "video" in media ? media.video.find(({ isCover }) => !isCover) : undefined;
  const audio = media && "audio" in media ? media.audio[0] : undefined;
  const pages = media && "pages" in media && media.pages > 1 ? media.pages : undefined;
  const rate = video && video.frameRate[1] > 0 ? video.frameRate[0] / video.frameRate[1] : 0;
  return (
    <dl class="facts">
      <Fact label={words.type}>{file.mime_type}</Fact>
      <Fact label={words.size}>
        <Bytes value={file.size_bytes} />
      </Fact>
      {shapeOf(file) && <Fact label={words.shape}>{shapeOf(file)}</Fact>}
      {pages && <Fact label={words.pages}>{formatNumber(pages)}</Fact>}
      {video && (
        <Fact label={words.video}>
          {[video.codec, rate > 0 && `${formatNumber(Math.round(rate * 100) / 100)} fps`]
            .filter(Boolean)
            .join(" · ")}
        </Fact>
      )}
      {audio && (
        <Fact
          label={words.audio}
        >{`${audio.codec} · ${formatNumber(audio.sampleRate / 1_000)} kHz · ${words.channels(audio.channels)}`}</Fact>
      )}
      {media && "bitrate" in media && media.bitrate && (
        <Fact label={words.bitrate}>{formatBits(media.bitrate)}</Fact>
      )}
      <Fact label={words.stored}>
        <Time at={file.created_at} />
        {file.role !== "uploaded" && <> · {words.roles[file.role]}</>}
      </Fact>
      <Fact label={words.folder}>
        <a href={href(file.folder_id ? `/files/${file.folder_id}` : "/files")}>
          <Name>{[listWords.all, ...file.folder_path.map(({ name }) => name)].join(" / ")}</Name>
        </a>
      </Fact>
    </dl>
  );
}

const Fact = ({ label, children }: { label: string; children: preact.ComponentChildren }) => (
  <>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </>
);

interface TagsProps {
  file: FileDetail;
  set: PaneProps["set"];
  mayWrite: boolean;
}

/** Tags and description; a tag shows every file that has it. */
function Tags({ file, set, mayWrite }: TagsProps) {
  const [isOpen, setOpen] = useState(false);
  const save = async (values: FormData) => {
    const { file: changed } = await api.patch<{ file: FileRecord }>(`/api/files/${file.id}`, {
      tags: tagsOf(String(values.get("tags") ?? "")),
      description: String(values.get("description") ?? "").trim() || null,
    });
    set({ tags: changed.tags, description: changed.description });
    setOpen(false);
  };
  if (isOpen)
    return (
      <Form action={save} label={words.tags}>
        <TextField
          label={words.tags}
          name="tags"
          hint={words.tagsHint}
          dir="auto"
          defaultValue={file.tags.join(", ")}
        />
        <TextField
          label={words.description}
          name="description"
          dir="auto"
          defaultValue={file.description ?? ""}
        />
        <div class="actions">
          <Submit>{words.save}</Submit>
          <Button onClick={() => setOpen(false)}>{words.cancel}</Button>
        </div>
      </Form>
    );
  return (
    <div class="stack">
      {file.description && <p class="name">{file.description}</p>}
      <div class="actions">
        {file.tags.map((tag) => (
          <button key={tag} type="button" class="pane-tag" onClick={() => go("/files", { search: { tag } })}>
            <Badge>
              <bdi>{tag}</bdi>
            </Badge>
          </button>
        ))}
        {mayWrite && (
          <Button small look="quiet" icon="tag" onClick={() => setOpen(true)}>
            {words.edit}
          </Button>
        )}
      </div>
    </div>
  );
}
