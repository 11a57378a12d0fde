/** The elements of `pages/share.html` that move. One place that knows their ids. */

function element<T extends Element>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`share.html has no ${kind.name} with the id ${id}`);
  return found;
}

export function findPage() {
  return {
    announcement: element("announcement", HTMLElement),
    failure: element("failure", HTMLElement),
    viewer: element("viewer", HTMLDialogElement),
    stage: element("viewer-stage", HTMLElement),
    viewerFailure: element("viewer-failure", HTMLElement),
    name: element("viewer-name", HTMLElement),
    facts: element("viewer-facts", HTMLElement),
    download: element("viewer-download", HTMLAnchorElement),
    close: element("viewer-close", HTMLButtonElement),
    previous: element("viewer-previous", HTMLButtonElement),
    next: element("viewer-next", HTMLButtonElement),
    viewerAnnouncement: element("viewer-announcement", HTMLElement),
  };
}

export type Page = ReturnType<typeof findPage>;
