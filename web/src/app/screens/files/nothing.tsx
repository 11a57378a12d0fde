/** What is shown in place of an empty list. */
import { serviceUrl } from "../../api/base";
import { Button } from "../../parts/button";
import { EmptyState } from "../../parts/states";
import { setQuery } from "../../router";
import type { View } from "./view";
import { words } from "./words";

export function Nothing({
  view,
  mayWrite,
  chooseFiles,
}: {
  view: View;
  mayWrite: boolean;
  chooseFiles: () => void;
}) {
  if (view.q || view.type || view.tag)
    return (
      <EmptyState
        icon="search"
        title={words.nothing.title}
        action={
          <Button onClick={() => setQuery({ q: undefined, type: undefined, tag: undefined })}>
            {words.nothing.clear}
          </Button>
        }
      >
        {words.nothing.body}
      </EmptyState>
    );
  const isTop = view.folder === null;
  const text = isTop ? words.empty : words.emptyFolder;
  return (
    <EmptyState
      icon="files"
      title={text.title}
      action={
        mayWrite && (
          <Button look="solid" icon="upload" onClick={chooseFiles}>
            {words.empty.action}
          </Button>
        )
      }
      curl={
        isTop && mayWrite
          ? `curl -s '${serviceUrl()}/api/files' \\\n  -H "Authorization: Bearer $KEY" -F file=@photo.jpg`
          : undefined
      }
      guide={isTop ? { href: "/guides/files", label: words.empty.guide } : undefined}
    >
      <p>{text.body}</p>
      <p>{mayWrite ? words.empty.drop : words.empty.viewer}</p>
    </EmptyState>
  );
}
