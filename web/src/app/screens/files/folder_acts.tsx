/** What is done with the folder that is shown. */
import { asApiError } from "../../api/error";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Menu } from "../../parts/menu";
import { go } from "../../router";
import { showCurl } from "../../shell/curl_panel";
import { toast } from "../../shell/toasts";
import type { FolderRecord } from "./types";
import { words } from "./words";

const acts = () => import("./acts");

interface FolderProps {
  folder: FolderRecord;
  changed: () => void;
}

export function ShareButton({ folder, changed }: FolderProps) {
  const share = () =>
    import("../shared/share_dialog").then((module) => module.openShare(folder)).then(changed);
  return (
    <Button icon="link" onClick={share}>
      {folder.shared ? words.shareOf : words.share}
    </Button>
  );
}

export function FolderMenu({ folder, changed }: FolderProps) {
  const mayWrite = can("write");
  const leave = () => go(folder.parent_id ? `/files/${folder.parent_id}` : "/files");
  const zip = () =>
    acts()
      .then((module) => module.zip([], folder))
      .catch((thrown) => toast(asApiError(thrown).message, "bad"));
  return (
    <Menu
      label={words.folderMenu}
      items={[
        mayWrite && {
          label: words.rename,
          icon: "edit",
          onSelect: () =>
            acts()
              .then((module) => module.renameFolder(folder))
              .then(changed),
        },
        mayWrite && {
          label: words.move,
          icon: "move",
          onSelect: () =>
            acts()
              .then((module) => module.moveFolder(folder))
              .then(changed),
        },
        { label: words.zip, icon: "download", onSelect: zip },
        { label: words.curl, icon: "terminal", onSelect: showCurl },
        mayWrite && {
          label: words.remove,
          icon: "trash",
          danger: true,
          onSelect: () =>
            acts()
              .then((module) => module.deleteFolder(folder))
              .then((done) => done && leave()),
        },
      ]}
    />
  );
}
