/** Messages about failures, shown above the list, or in the viewer while that is open. */
import type { End } from "./link";
import type { Page } from "./page";

export interface Failure {
  title: string;
  detail: string;
  /** A link that resolves it, if there is one. */
  way?: { name: string; href: string };
}

const LATER: Failure = {
  title: "The download cannot begin at the moment",
  detail: "Please try again in a little while.",
};

export function ofEnd(end: End): Failure {
  if (end === "gone") {
    return {
      title: "This link is no longer available",
      detail:
        "It may have expired, or its owner may have withdrawn it. Please ask anyone who sent it for a new one.",
    };
  }
  return {
    title: "This folder asks for its password again",
    detail: "It is asked for from time to time.",
    way: { name: "Enter the password", href: location.pathname + location.search },
  };
}

/** @param status of the download's address, under a valid link; null when the service cannot be reached */
export function ofDownload(status: number | null): Failure {
  switch (status) {
    case null:
      return {
        title: "The service cannot be reached",
        detail: "Please see whether you are connected, and try again.",
      };
    case 404:
      return { title: "This file is no longer here", detail: "It may have been moved or deleted." };
    case 410:
      return {
        title: "This link allows no more downloads",
        detail: "Its owner has set a limit, which is reached. Please ask anyone who sent it for a new one.",
      };
    case 413:
      return {
        title: "There are too many files for one ZIP file",
        detail: "Please download the files that you need one by one.",
      };
    default:
      return LATER;
  }
}

/** The two places for messages; the end of the link is shown in both and stays. */
export class Failures {
  constructor(private readonly page: Page) {}

  say(failure: Failure): void {
    const { viewer, viewerFailure, failure: over } = this.page;
    const place = viewer.open ? viewerFailure : over;
    const close = document.createElement("button");
    close.className = "button button-plain";
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => place.replaceChildren());
    place.replaceChildren(words(failure), close);
  }

  sayForGood(failure: Failure): void {
    for (const place of [this.page.failure, this.page.viewerFailure]) place.replaceChildren(words(failure));
  }

  clear(): void {
    for (const place of [this.page.failure, this.page.viewerFailure]) place.replaceChildren();
  }
}

function words({ title, detail, way }: Failure): HTMLElement {
  const element = document.createElement("p");
  const strong = document.createElement("strong");
  strong.textContent = title;
  element.append(strong, ` ${detail}`);
  if (way) {
    const link = document.createElement("a");
    link.href = way.href;
    link.textContent = way.name;
    element.append(" ", link);
  }
  return element;
}
