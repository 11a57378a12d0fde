/** The help of a screen: what it is for, its keys, its guides, and the first steps again. */
import { address } from "../../api/base";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { go, href, path } from "../../router";
import { chooseFirstSteps } from "../../shell/first_steps";
import { matched } from "../../shell/outlet";
import { type KeyHelp, keysEverywhere, keysOfScreen } from "../../shell/shortcuts";
import { helpFor, helpWords as words } from "./help_words";

export function openHelp(): Promise<void> {
  const { about, guides } = helpFor(path.peek());
  const { title } = matched().route;
  return openDialog((close) => (
    <Dialog title={words.title(title)} onClose={close}>
      <p>{about}</p>
      <section class="stack">
        <h3>{words.guides}</h3>
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: a link inside is activated by its own keys, which click */}
        <ul class="help-guides" onClick={(event) => (event.target as Element).closest("a") && close()}>
          {guides.map(([name, title]) => (
            <li key={name}>
              <a href={href(`/guides/${name}`)}>{title}</a>
            </li>
          ))}
          <li>
            <a href={address("/docs")} target="_blank" rel="noopener">
              {words.reference}
            </a>
          </li>
        </ul>
      </section>
      {keysOfScreen.value.length > 0 && <Keys title={words.onScreen} list={keysOfScreen.value} />}
      <Keys title={words.everywhere} list={keysEverywhere} />
      {can("write") && (
        <div class="actions">
          <Button
            onClick={() => {
              chooseFirstSteps("asked");
              close();
              go("/");
            }}
          >
            {words.steps}
          </Button>
        </div>
      )}
    </Dialog>
  ));
}

function Keys({ title, list }: { title: string; list: KeyHelp[] }) {
  return (
    <section class="stack">
      <h3>{title}</h3>
      <dl class="keys">
        {list.map(({ keys, does }) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
