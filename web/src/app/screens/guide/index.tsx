/** A guide, read in the dashboard: the same text as in the documentation. */
import { useLayoutEffect } from "preact/hooks";
import { useResource } from "../../api/resource";
import { CodeBox } from "../../parts/code_box";
import { Page } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { href } from "../../router";
import type { ScreenProps } from "../../routes";
import { type Block, type Inline, parse, placeOf, textOf } from "./markdown";
import { guides } from "./texts";
import { words } from "./words";

export default function Guide({ params }: ScreenProps) {
  const name = params.name ?? "dashboard";
  const guide = useResource(async () => {
    const load = Object.hasOwn(guides, name) ? guides[name] : undefined;
    return load ? parse((await load()).default) : [];
  }, [name]);
  const [first, ...rest] = guide.data ?? [];
  const title = first?.is === "heading" ? textOf(first.inside) : words.all;
  useLayoutEffect(() => {
    if (!guide.data || !location.hash) return;
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  }, [guide.data]);
  return (
    <Page title={title}>
      <Loaded of={guide} skeleton={<Skeleton rows={8} height={32} />}>
        {() => (
          <article class="guide prose">
            {rest.map((block, i) => (
              // The blocks of a text keep their places
              <Drawn key={i} block={block} />
            ))}
            {!first && <p>{words.missing}</p>}
          </article>
        )}
      </Loaded>
      <nav aria-label={words.all}>
        <ul class="guide-list">
          {Object.keys(guides).map((other) => (
            <li key={other}>
              <a href={href(`/guides/${other}`)} aria-current={other === name ? "page" : undefined}>
                {other.replaceAll("-", " ")}
              </a>
            </li>
          ))}
        </ul>
      </nav>
    </Page>
  );
}

function Drawn({ block }: { block: Block }) {
  if (block.is === "code") return <CodeBox label={words.code}>{block.text}</CodeBox>;
  if (block.is === "paragraph") return <p>{drawn(block.inside)}</p>;
  if (block.is === "heading") {
    const Heading = block.level <= 2 ? "h2" : "h3";
    return <Heading id={block.id}>{drawn(block.inside)}</Heading>;
  }
  if (block.is === "list") {
    const List = block.isOrdered ? "ol" : "ul";
    return (
      <List>
        {block.items.map((item, i) => (
          // As above
          <li key={i}>{drawn(item)}</li>
        ))}
      </List>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls is reached by keyboard
    <section class="table-scroll" tabIndex={0} aria-label={textOf(block.head[0] ?? []) || words.code}>
      <table class="table">
        <thead>
          <tr>
            {block.head.map((cell, i) => (
              <th key={i} scope="col">
                {drawn(cell)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {block.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{drawn(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const drawn = (inside: Inline[]) => inside.map((part, i) => <Part key={i} part={part} />);

function Part({ part }: { part: Inline }) {
  if (part.is === "link") return <Link to={part.to} inside={part.inside} />;
  if (part.is === "code") return <code>{part.text}</code>;
  if (part.is === "text") return <>{part.text}</>;
  const Emphasis = part.is;
  return <Emphasis>{drawn(part.inside)}</Emphasis>;
}

function Link({ to, inside }: { to: string; inside: Inline[] }) {
  const place = placeOf(to);
  const text = drawn(inside);
  if (!place) return <>{text}</>;
  if ("address" in place)
    return (
      <a href={place.address} target="_blank" rel="noopener noreferrer">
        {text}
      </a>
    );
  const anchor = place.anchor && `#${place.anchor}`;
  return <a href={place.guide ? href(`/guides/${place.guide}`) + anchor : anchor}>{text}</a>;
}
