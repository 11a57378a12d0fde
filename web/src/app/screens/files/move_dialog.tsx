/** The dialog that moves files and folders: a tree, in which folders can be made. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { Button, Submit } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { actWords as words } from "./act_words";
import { moveItems } from "./moving";
import { FolderTree } from "./tree";
import type { FileRecord, FolderRecord, FolderRef } from "./types";

/** A folder to move into; resolves with whether one was chosen and the move done. */
async function chooseFolder(
  title: string,
  hidden: string | undefined,
  move: (to: string | null) => Promise<unknown>,
) {
  let isDone = false;
  await openDialog((close) => (
    <Dialog title={title} onClose={close}>
      <FolderPicker
        hidden={hidden}
        close={close}
        move={async (to) => {
          await move(to);
          isDone = true;
          close();
        }}
      />
    </Dialog>
  ));
  return isDone;
}

interface PickerProps {
  hidden: string | undefined;
  close: () => void;
  move: (to: string | null) => Promise<unknown>;
}

function FolderPicker({ hidden, close, move }: PickerProps) {
  const [chosen, setChosen] = useState<string | null>(null);
  const [ancestors, setAncestors] = useState<FolderRef[]>([]);
  const [name, setName] = useState("");
  const create = async () => {
    const { folder } = await api.post<{ folder: FolderRecord }>("/api/folders", {
      name: name.trim(),
      parentId: chosen,
    });
    setAncestors([...folder.ancestors, { id: folder.id, name: folder.name }]);
    setChosen(folder.id);
    setName("");
  };
  return (
    <div class="form">
      <div class="picker">
        <FolderTree current={chosen} ancestors={ancestors} onChoose={setChosen} hidden={hidden} />
      </div>
      <Form action={create} class="picker-new" label={words.newFolder}>
        <TextField
          label={words.newFolderIn}
          hiddenLabel
          placeholder={words.newFolderIn}
          name="name"
          required
          tabIndex={-1}
          maxLength={255}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <Submit look="plain" icon="folder_plus">
          {words.create}
        </Submit>
      </Form>
      <div class="dialog-actions">
        <Button onClick={close}>{words.cancel}</Button>
        <Button look="solid" action={() => move(chosen)}>
          {words.moveHere}
        </Button>
      </div>
    </div>
  );
}

export const moveFolder = (folder: FolderRecord) =>
  chooseFolder(words.moveTitle(folder.name), folder.id, (to) => moveItems({ files: [], folder }, to));

/** Resolves with what was moved, and so is no longer where it was chosen. */
export async function moveFiles(files: FileRecord[]): Promise<string[] | undefined> {
  const title = words.moveTitle(files.length === 1 ? (files[0]?.filename ?? "") : words.files(files.length));
  const isDone = await chooseFolder(title, undefined, (to) => moveItems({ files }, to));
  return isDone ? files.map(({ id }) => id) : undefined;
}
