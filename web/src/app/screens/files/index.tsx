/** Files and folders: tree, grid or list, search, upload, preview, and what is done with a selection. */
import { useEffect, useState } from "preact/hooks";
import type { Kind } from "../../api/changes";
import { api } from "../../api/client";
import { asApiError } from "../../api/error";
import { useResource, useRevision } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Icon } from "../../parts/icon";
import { Menu } from "../../parts/menu";
import { Page } from "../../parts/page";
import { ErrorState, Loaded, Skeleton } from "../../parts/states";
import { go, href, query, setQuery } from "../../router";
import type { ScreenProps } from "../../routes";
import { showCurl } from "../../shell/curl_panel";
import { kept } from "../../shell/kept";
import { useKeyHelp } from "../../shell/shortcuts";
import { toast } from "../../shell/toasts";
import { chooseAllOf } from "./choosing";
import { type DropActs, dropInto } from "./drag";
import { useAskedFor, usePaste } from "./entering";
import { FolderMenu, ShareButton } from "./folder_acts";
import { ItemList } from "./item_list";
import { moveItems } from "./moving";
import { Nothing } from "./nothing";
import { PreviewPlace } from "./preview_place";
import { useRefresh } from "./refresh";
import { anchoredAt, NONE, type Selection, without } from "./selection";
import { SelectionBar } from "./selection_bar";
import { Toolbar } from "./toolbar";
import { FolderTree } from "./tree";
import type { FolderRecord, StorageUse } from "./types";
import { openUploads, useUploads } from "./uploading";
import { keyOf, loadBeginning, SORTS, type View } from "./view";
import { words } from "./words";

const KEYS = [
  { keys: ["↑", "↓", "←", "→"], does: words.keys.move },
  { keys: ["Enter"], does: words.keys.open },
  { keys: ["Space"], does: words.keys.preview },
  { keys: ["Shift", "↓"], does: words.keys.range },
  { keys: ["X"], does: words.keys.one },
  { keys: ["Ctrl", "A"], does: words.keys.all },
  { keys: ["F2"], does: words.keys.rename },
  { keys: ["Delete"], does: words.keys.remove },
  { keys: ["/"], does: words.keys.search },
  { keys: ["Esc"], does: words.keys.none },
];

const KINDS: Kind[] = ["file", "folder", "share"];
const acts = () => import("./acts");

export default function Files({ params }: ScreenProps) {
  const folderId = params.folder ?? null;
  const search = query.value;
  const savedSort = kept("files.sort") ?? "";
  const view: View = {
    folder: folderId,
    q: search.get("q") ?? "",
    type: search.get("type") ?? "",
    tag: search.get("tag") ?? "",
    sort: SORTS.includes(savedSort) ? savedSort : "created:desc",
  };
  const [look, setLook] = useState(kept("files.view") === "list" ? "list" : "grid");
  const [, resort] = useState("");
  const [selection, setSelection] = useState<Selection>(NONE);
  const key = keyOf(view);
  useEffect(() => setSelection(NONE), [key]);
  useKeyHelp(KEYS);

  const beginning = useResource((signal) => loadBeginning(view, signal), [key], { keep: true });
  const folder = useFolder(folderId);
  const use = useResource((signal) => api.get<StorageUse>("/api/usage", { signal }), [], {
    when: folderId === null,
  });
  const counts = folderId === null ? use.data && topCounts(use.data) : folder.data && countsOf(folder.data);
  useRefresh(KINDS, () => {
    beginning.reload();
    if (folderId === null) use.reload();
    else folder.reload();
  });
  const mayWrite = can("write");
  const uploads = useUploads();
  const drops: DropActs | null = mayWrite
    ? {
        move: (items, to) =>
          moveItems(items, to).then(
            () => {
              setSelection((before) =>
                without(
                  before,
                  items.files.map((file) => file.id),
                ),
              );
              beginning.reload();
            },
            (thrown) => toast(asApiError(thrown).message, "bad"),
          ),
        upload: (data, to) => openUploads().then((queue) => queue.addDropped(data, to)),
      }
    : null;
  usePaste(folderId, mayWrite);
  useAskedFor(folderId, uploads.chooseFiles);

  // What is shown may still be of the view before
  const data = beginning.data;
  const revision = useRevision(data);
  const here = folderId === null ? words.title : (folder.data?.name ?? "");
  // While another folder loads, the head stays as it was, without acts
  const present = folder.data?.id === folderId ? folder.data : null;
  const isFiltered = data && Boolean(data.view.q || data.view.type || data.view.tag);
  const openId = search.get("file");

  if (folder.error?.status === 404)
    return (
      <Page title={words.title} crumbs={[{ label: words.all, to: "/files" }]}>
        <ErrorState error={asApiError(new Error(words.missing))} />
      </Page>
    );
  return (
    <Page
      full
      title={here || words.title}
      crumbs={folderId === null ? [] : crumbsOf(folder.data ?? null)}
      aside={
        <span class="numeric">
          {isFiltered ? words.found(data.total) : counts && words.counts(counts.files, counts.bytes)}
        </span>
      }
      actions={
        <>
          {present && mayWrite && <ShareButton folder={present} changed={folder.reload} />}
          {mayWrite && (
            <>
              <Button icon="folder_plus" onClick={() => acts().then((module) => module.newFolder(folderId))}>
                {words.newFolder}
              </Button>
              <Menu
                label={words.upload}
                look="solid"
                button={
                  <>
                    <Icon name="upload" />
                    {words.upload}
                  </>
                }
                items={[
                  { label: words.uploadFiles, icon: "file", onSelect: uploads.chooseFiles },
                  { label: words.uploadFolder, icon: "files", onSelect: uploads.chooseFolder },
                  {
                    label: words.uploadAddress,
                    icon: "link",
                    onSelect: () => acts().then((module) => module.uploadAddress(folderId)),
                  },
                  { label: words.curl, icon: "terminal", onSelect: showCurl },
                ]}
              />
            </>
          )}
          {present && <FolderMenu folder={present} changed={folder.reload} />}
        </>
      }
    >
      {uploads.inputs(folderId)}
      <Toolbar
        view={view}
        look={look}
        folderName={folderId === null ? null : (folder.data?.name ?? null)}
        onLook={(next) => setLook(kept("files.view", next) ?? next)}
        onSort={(next) => resort(kept("files.sort", next) ?? next)}
      />
      {selection.files.size > 0 && (
        <SelectionBar
          files={selection.files}
          folder={folderId}
          changed={beginning.reload}
          clear={() => setSelection(NONE)}
          chooseAll={() => data && chooseAllOf(data).then(setSelection)}
          forget={(ids) => setSelection((before) => without(before, ids))}
        />
      )}
      <div class={`files ${openId ? "files-open" : ""}`}>
        <nav class="files-side" aria-label={words.tree}>
          <FolderTree
            current={folderId}
            ancestors={present?.ancestors ?? []}
            onChoose={(id) => go(id === null ? "/files" : `/files/${id}`)}
            drops={drops}
          />
          <a class="files-shares" href={href("/files/shares")}>
            {words.shares}
          </a>
        </nav>
        <div class="files-main" {...dropInto(folderId, drops, "upload")}>
          <Loaded of={beginning} skeleton={<Skeleton rows={5} height={96} />}>
            {(loaded) =>
              loaded.folders.length + loaded.total === 0 ? (
                <Nothing view={view} mayWrite={mayWrite} chooseFiles={uploads.chooseFiles} />
              ) : (
                <ItemList
                  beginning={loaded}
                  revision={revision}
                  look={look}
                  openId={openId}
                  selection={selection}
                  setSelection={setSelection}
                  drops={drops}
                />
              )
            }
          </Loaded>
          <p class="files-drop" aria-hidden="true">
            {words.dropHere}
          </p>
        </div>
        {openId && (
          <PreviewPlace
            key={openId}
            id={openId}
            close={() => {
              setQuery({ file: undefined });
              setSelection((before) => anchoredAt(before, before.anchor));
            }}
            changed={beginning.reload}
          />
        )}
      </div>
    </Page>
  );
}

const crumbsOf = (folder: FolderRecord | null) => [
  { label: words.all, to: "/files" },
  ...(folder?.ancestors ?? []).map(({ id, name }) => ({ label: name, to: `/files/${id}` })),
];

function useFolder(id: string | null) {
  return useResource<FolderRecord | null>(
    async (signal) =>
      id === null
        ? null
        : (await api.get<{ folder: FolderRecord }>(`/api/folders/${encodeURIComponent(id)}`, { signal }))
            .folder,
    [id],
    { keep: true },
  );
}

/** How much is in the account. */
const topCounts = ({ storage }: StorageUse) => ({ files: storage.files, bytes: storage.usedBytes });

/** How much is in the folder and below. */
const countsOf = ({ file_count, bytes }: FolderRecord) =>
  file_count === null ? undefined : { files: file_count, bytes: bytes ?? 0 };
