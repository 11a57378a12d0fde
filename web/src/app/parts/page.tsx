/** The frame of a screen: title, breadcrumb, actions. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { href } from "../router";

export interface Crumb {
  label: string;
  to: string;
}

interface PageProps {
  /** The document's title, and the heading unless `heading` is given. */
  title: string;
  heading?: ComponentChildren;
  crumbs?: Crumb[];
  /** Beside the heading: a badge, a count. */
  aside?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  /** Fills the height of the window; the screen scrolls inside of itself (long lists). */
  full?: boolean;
}

export function Page({ title, heading, crumbs, aside, actions, children, full }: PageProps) {
  return (
    <div class={`page ${full ? "page-full" : ""}`}>
      <PageTitle title={title} />
      {crumbs && crumbs.length > 0 && (
        <nav class="breadcrumb" aria-label="Breadcrumb">
          <ol>
            {crumbs.map((crumb) => (
              <li key={crumb.to}>
                <a href={href(crumb.to)}>
                  <bdi>{crumb.label}</bdi>
                </a>
              </li>
            ))}
            <li aria-hidden="true">
              <bdi>{title}</bdi>
            </li>
          </ol>
        </nav>
      )}
      <header class="page-head">
        <h1 tabIndex={-1}>{heading ?? <bdi>{title}</bdi>}</h1>
        {aside && <div class="page-aside">{aside}</div>}
        {actions && <div class="actions page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  title: string;
  children: ComponentChildren;
  actions?: ComponentChildren;
  class?: string;
}

/** A card with a heading. */
export function Section({ title, children, actions, class: extra = "" }: SectionProps) {
  return (
    <section class={`card ${extra}`} aria-label={title}>
      <header class="card-head">
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** The title of the document. */
export function PageTitle({ title }: { title: string }) {
  useEffect(() => {
    document.title = title.includes("Sluice") ? title : `${title} – Sluice`;
  }, [title]);
  return null;
}
