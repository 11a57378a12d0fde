/** A dialog that asks for one of a list: a kind of step, a step, a place. Typing narrows it, Enter takes the first. */
import { useState } from "preact/hooks";
import { Dialog, openDialog } from "../../parts/dialog";
import { TextField } from "../../parts/form";
import { Icon, type IconName } from "../../parts/icon";
import { words } from "./words";

export interface Option<T> {
  value: T;
  label: string;
  hint?: string | undefined;
  icon?: IconName | undefined;
  group?: string | undefined;
}

export async function pick<T>(title: string, options: Option<T>[]): Promise<T | undefined> {
  let chosen: T | undefined;
  await openDialog((close) => (
    <Dialog title={title} onClose={close}>
      <Options
        options={options}
        onPick={(value) => {
          chosen = value;
          close();
        }}
      />
    </Dialog>
  ));
  return chosen;
}

function Options<T>({ options, onPick }: { options: Option<T>[]; onPick: (value: T) => void }) {
  const [typed, setTyped] = useState("");
  const wanted = typed.trim().toLowerCase();
  const score = ({ label, hint = "" }: Option<T>) => {
    const name = label.toLowerCase();
    if (name.startsWith(wanted)) return 0;
    return name.includes(wanted) ? 1 : hint.toLowerCase().includes(wanted) ? 2 : 3;
  };
  const found = wanted
    ? options.filter((option) => score(option) < 3).sort((a, b) => score(a) - score(b))
    : options;
  const groups = wanted ? [undefined] : [...new Set(found.map(({ group }) => group))];
  return (
    <form
      class="pick"
      onKeyDown={moveFocus}
      onSubmit={(event) => {
        event.preventDefault();
        const [first] = found;
        if (first) onPick(first.value);
      }}
    >
      <TextField
        label={words.pick.search}
        hiddenLabel
        placeholder={words.pick.search}
        name="q"
        type="search"
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <div class="pick-list">
        {found.length === 0 && <p class="soft">{words.pick.none}</p>}
        {groups.map((group) => (
          <section key={group ?? ""} aria-label={group}>
            {group && <h3>{group}</h3>}
            <ul>
              {found
                .filter((option) => wanted || option.group === group)
                .map((option, i) => (
                  // What is found is drawn as a whole
                  <li key={i}>
                    <button type="button" class="pick-option" onClick={() => onPick(option.value)}>
                      {option.icon && <Icon name={option.icon} />}
                      <span>
                        <bdi>{option.label}</bdi>
                        {option.hint && <small>{option.hint}</small>}
                      </span>
                    </button>
                  </li>
                ))}
            </ul>
          </section>
        ))}
      </div>
    </form>
  );
}

/** Arrow keys go through the search field and the options. */
function moveFocus(event: KeyboardEvent & { currentTarget: HTMLElement }) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>("input, .pick-option")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const next = all[at + (event.key === "ArrowDown" ? 1 : -1)];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
}
