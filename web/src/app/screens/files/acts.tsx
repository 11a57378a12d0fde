/** What is done with files and folders by dialogs; loaded when the first of them is opened. */
import { onThisOrigin } from "../../api/base";
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { Button, Submit } from "../../parts/button";
import { ask, Dialog, openDialog } from "../../parts/dialog";
import { download } from "../../parts/download";
import { Checkbox, Form, TextField } from "../../parts/form";
import { formatBytes, formatNumber } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { Name } from "../../parts/values";
import { toast } from "../../shell/toasts";
import { actWords as words } from "./act_words";
import { bulk } from "./moving";
import { bytesOfAll } from "./selection";
import { tagsOf } from "./tags";
import type { FileRecord, FolderRecord, ZipAnswer } from "./types";
import { openUploads } from "./uploading";

export { moveFiles, moveFolder } from "./move_dialog";
export { convert, runWorkflow } from "./processing";

/** Above so many, their number is typed before they are deleted. */
const TYPED_ABOVE = 20;
/** What the service packs at once; a folder may have more. */
const MOST_IN_ZIP = 1_000;

interface NameDialog {
  title: string;
  label: string;
  verb: string;
  value: string;
  field: string;
  save: (name: string) => Promise<unknown>;
}

/** Asks for a name; its ending is left out of what is selected at first. */
function askName({ title, label, verb, value, field, save }: NameDialog): Promise<void> {
  const selectStem = (input: HTMLInputElement | null) => {
    const dot = value.lastIndexOf(".");
    input?.setSelectionRange(0, dot > 0 ? dot : value.length);
  };
  return openDialog((close) => (
    <Dialog title={title} onClose={close}>
      <Form action={(values) => save(String(values.get(field) ?? "").trim()).then(close)}>
        <TextField
          label={label}
          name={field}
          required
          maxLength={255}
          dir="auto"
          defaultValue={value}
          spellcheck={false}
          onFocus={(event) => selectStem(event.currentTarget)}
        />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{verb}</Submit>
        </div>
      </Form>
    </Dialog>
  ));
}

export const newFolder = (parentId: string | null) =>
  askName({
    title: words.newFolder,
    label: words.name,
    verb: words.create,
    value: "",
    field: "name",
    save: (name) => api.post("/api/folders", { name, parentId }),
  });

export const renameFolder = (folder: FolderRecord) =>
  askName({
    title: words.renameFolder,
    label: words.name,
    verb: words.rename,
    value: folder.name,
    field: "name",
    save: (name) => api.patch(`/api/folders/${folder.id}`, { name }),
  });

export const renameFile = (file: FileRecord) =>
  askName({
    title: words.renameFile,
    label: words.name,
    verb: words.rename,
    value: file.filename,
    field: "filename",
    save: (filename) => api.patch(`/api/files/${file.id}`, { filename }),
  });

/** Opened by the palette: files are chosen by a button, because browsers open their dialog only at a press. */
export const upload = (chooseFiles: () => void) =>
  openDialog((close) => (
    <Dialog title={words.upload} onClose={close}>
      <p class="soft">{words.uploadNote}</p>
      <div class="dialog-actions">
        <Button
          look="solid"
          icon="upload"
          onClick={() => {
            close();
            chooseFiles();
          }}
        >
          {words.chooseFiles}
        </Button>
      </div>
    </Dialog>
  ));

export const uploadAddress = (folder: string | null, address = "") =>
  openDialog((close) => (
    <Dialog title={words.fromAddress} onClose={close}>
      <Form
        action={async (values) => {
          const url = new URL(String(values.get("sourceUrl")).trim());
          (await openUploads()).addAddress(url.href, folder);
          close();
        }}
      >
        <TextField
          label={words.address}
          name="sourceUrl"
          type="url"
          required
          defaultValue={address}
          placeholder="https://"
          hint={words.addressHint}
        />
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit icon="download">{words.fetch}</Submit>
        </div>
      </Form>
    </Dialog>
  ));

export function tagFiles(files: FileRecord[]): Promise<undefined> {
  const ids = files.map(({ id }) => id);
  const counts = new Map<string, number>();
  for (const { tags } of files) for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return openDialog((close) => (
    <Dialog title={words.tagTitle(files.length)} onClose={close}>
      <Form
        action={async (values) => {
          const tags = tagsOf(String(values.get("tags") ?? ""));
          const removeTags = values.getAll("remove").map(String);
          if (tags.length + removeTags.length > 0) {
            await bulk(ids, { action: "tag", tags, removeTags });
            toast(words.tagged(files.length));
          }
          close();
        }}
      >
        <TextField label={words.addTags} name="tags" hint={words.tagsHint} dir="auto" />
        {counts.size > 0 && (
          <fieldset class="stack plain-set">
            <legend class="small">{words.removeTags}</legend>
            {[...counts].slice(0, 50).map(([tag, count]) => (
              <Checkbox
                key={tag}
                name="remove"
                value={tag}
                label={
                  <>
                    <bdi>{tag}</bdi> <span class="soft">{formatNumber(count)}</span>
                  </>
                }
              />
            ))}
          </fieldset>
        )}
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Submit>{words.save}</Submit>
        </div>
      </Form>
    </Dialog>
  )).then(() => undefined);
}

/** Resolves with what is gone. */
export async function deleteFiles(files: FileRecord[]): Promise<string[] | undefined> {
  const [first] = files;
  if (!first) return undefined;
  const ids = files.map(({ id }) => id);
  const isOne = files.length === 1;
  const confirmed = await ask({
    title: isOne ? words.deleteOne : words.deleteMany(files.length),
    body: (
      <>
        {isOne ? (
          <p>
            <Name>{first.filename}</Name>
          </p>
        ) : (
          <ul>
            {files.slice(0, 5).map(({ id, filename }) => (
              <li key={id}>
                <Name>{filename}</Name>
              </li>
            ))}
            {files.length > 5 && <li>{words.andMore(files.length - 5)}</li>}
          </ul>
        )}
        <p>{words.deleteBreaks(formatBytes(bytesOfAll(files)))}</p>
      </>
    ),
    verb: isOne ? words.remove : words.deleteMany(files.length),
    ...(files.length > TYPED_ABOVE ? { typed: words.files(files.length) } : {}),
    action: () => bulk(ids, { action: "delete" }),
  });
  if (!confirmed) return undefined;
  toast(words.deleted(files.length));
  return ids;
}

export async function deleteFolder({ id }: FolderRecord): Promise<boolean> {
  const { folder } = await api.get<{ folder: FolderRecord }>(`/api/folders/${id}`);
  const count = folder.file_count ?? 0;
  return ask({
    title: words.deleteFolder,
    body: (
      <>
        <p>
          <Icon name="files" /> <Name>{folder.name}</Name>
        </p>
        <p>{words.folderHolds(count, formatBytes(folder.bytes ?? 0), folder.has_children)}</p>
        {folder.shared && <p>{words.folderShared}</p>}
      </>
    ),
    verb: words.remove,
    ...(count > TYPED_ABOVE ? { typed: folder.name } : {}),
    action: () => api.delete(`/api/folders/${id}`, { query: { recursive: true } }),
  });
}

/** Downloads one archive of what is chosen; the browser continues it by itself when it is cut. */
export async function zip(files: FileRecord[], folder?: FolderRecord) {
  if (files.length > MOST_IN_ZIP) throw new ApiError(400, words.tooManyToZip(MOST_IN_ZIP));
  const name = folder?.name ?? (files.length === 1 ? files[0]?.filename : undefined);
  const answer = await api.post<ZipAnswer>("/api/files/zip", {
    ids: files.map(({ id }) => id),
    folderIds: folder ? [folder.id] : [],
    ...(name ? { name } : {}),
  });
  download(onThisOrigin(answer.url));
  toast(words.zipping(answer.files, formatBytes(answer.bytes)));
}
