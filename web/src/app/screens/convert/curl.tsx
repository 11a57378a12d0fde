/** The present choice as a command. */
import { serviceUrl } from "../../api/base";
import { asCurl } from "../../api/calls";
import { CopyField } from "../../parts/copy";
import { Dialog, openDialog } from "../../parts/dialog";
import { joins } from "./fields";
import { requestOf, type Wanted } from "./request";
import type { Source } from "./types";
import { words } from "./words";

/** Stands for a file where none was chosen yet. */
const example = (): Source => ({
  key: 0,
  name: "photo.jpg",
  size: 0,
  mime: "image/jpeg",
  file: new File([], "photo.jpg"),
});

export function showAsCurl(wanted: Wanted, sources: Source[]) {
  const given = sources.length > 0 ? sources : [example()];
  const of = joins(wanted.tool) ? given.map(named) : given.slice(0, 1);
  const request = requestOf(wanted, of);
  const command = asCurl({ method: "POST", path: request.path, body: request.body }, serviceUrl());
  openDialog((close) => (
    <Dialog title={words.curl.title} onClose={close} wide>
      <p class="soft">
        {words.curl.lead} <code>export KEY=svc_…</code>
      </p>
      <CopyField label={words.curl.command} value={command} code />
      {!joins(wanted.tool) && given.length > 1 && <p class="soft small">{words.curl.each}</p>}
    </Dialog>
  ));
}

/** Several files go out as bytes: a stored one is named as the file that it would be downloaded to. */
const named = (source: Source): Source =>
  source.file ? source : { ...source, file: new File([], source.name, { type: source.mime }) };
