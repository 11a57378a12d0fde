/** The workflow as an ordered tree of buttons: for the keyboard, screen readers and phones. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "../../parts/button";
import { Icon } from "../../parts/icon";
import { Menu } from "../../parts/menu";
import { isBranch, type Step, stepOf, titleOf } from "../shared/flow";
import { graphWords } from "./graph_words";
import { kindIcon, summaryOf } from "./kinds";
import type { Mark, MarkState } from "./marks";
import { type Chain, type Item, itemsOf } from "./order";
import { signOf, useEditor } from "./state";
import { words } from "./words";

const texts = words.outline;

/** `focus` grows when the chosen step is to have the focus. */
export function OutlineView({ focus }: { focus: number }) {
  const { outline, selected, select } = useEditor();
  const place = useRef<HTMLDivElement>(null);
  const { main, loose } = outline;
  const order = [main, ...loose].flatMap(itemsOf).map((item) => item.step);
  const buttons = () => [...(place.current?.querySelectorAll<HTMLElement>(".outline-button") ?? [])];
  // Before the next key is pressed, which is meant for this step.
  useLayoutEffect(() => {
    const at = order.findIndex(({ id }) => id === selected);
    if (focus > 0) buttons()[Math.max(0, at)]?.focus();
    else buttons()[at]?.scrollIntoView({ block: "nearest" });
  }, [focus]);
  const onKeyDown = (event: KeyboardEvent) => {
    const all = buttons();
    const at = all.indexOf(event.target as HTMLElement);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    const step = to === undefined ? undefined : order[to];
    if (to === undefined || !step) return;
    event.preventDefault();
    select(step.id);
    all[to]?.focus();
  };
  return (
    <div class="outline" role="group" aria-label={texts.label} ref={place} onKeyDown={onKeyDown}>
      <h2 class="visually-hidden">{texts.label}</h2>
      <p class="visually-hidden" id="outline-keys">
        {texts.keys}
      </p>
      <ChainView chain={main} label={texts.label} tabStop={selected ?? order[0]?.id} />
      {loose.length > 0 && (
        <section class="outline-loose">
          <h3>{texts.loose}</h3>
          {loose.map((chain) => (
            <ChainView
              key={chain.items[0]?.step.id}
              chain={chain}
              label={texts.loose}
              tabStop={selected ?? undefined}
            />
          ))}
        </section>
      )}
    </div>
  );
}

function ChainView({ chain, label, tabStop }: { chain: Chain; label: string; tabStop: string | undefined }) {
  return (
    <ol aria-label={label}>
      {chain.items.map((item) => (
        <StepRow key={item.step.id} item={item} tabStop={tabStop} />
      ))}
      {chain.end && <EndRow end={chain.end} />}
    </ol>
  );
}

function StepRow({ item, tabStop }: { item: Item; tabStop: string | undefined }) {
  const editor = useEditor();
  const { flow, selected, select, marks, problems } = editor;
  const { step, number, arms } = item;
  const isSelected = selected === step.id;
  const sign = signOf(problems, step.id);
  const mark = marks?.get(step.id);
  const summary = summaryOf(step, flow);
  return (
    <li class="outline-step">
      <div class={`outline-row ${isSelected ? "outline-selected" : ""} ${mark ? `flow-${mark.state}` : ""}`}>
        <button
          type="button"
          class="outline-button"
          tabIndex={tabStop === step.id ? 0 : -1}
          aria-current={isSelected || undefined}
          aria-describedby="outline-keys"
          onClick={() => select(step.id, { open: true })}
          onKeyDown={(event) => onStepKey(event, step, editor)}
        >
          <span class="outline-number">{number}</span>
          <Icon name={kindIcon(step.kind)} />
          <span class="outline-text">
            <bdi class="outline-title">{titleOf(step)}</bdi>
            {summary && <bdi class="outline-note">{summary}</bdi>}
          </span>
          {mark && <MarkSign mark={mark} />}
          {sign && (
            <span class={`outline-sign outline-${sign}`}>
              <Icon name={sign === "error" ? "error" : "warn"} />
              <span class="visually-hidden">{texts.problem[sign]}</span>
            </span>
          )}
        </button>
        {isSelected && <StepActions step={step} />}
      </div>
      {arms.length > 0 && (
        <div class="arms">
          {arms.map((arm) => {
            const label = arm.from?.result === "true" ? texts.whenTrue : texts.whenFalse;
            return (
              <section key={arm.from?.result} aria-label={label}>
                <h3>{label}</h3>
                <ChainView chain={arm} label={label} tabStop={tabStop} />
              </section>
            );
          })}
        </div>
      )}
    </li>
  );
}

const SIGNS = {
  done: "check",
  failed: "error",
  running: "play",
  waiting: "clock",
  skipped: "skip",
  unknown: "help",
} as const;

function MarkSign({ mark }: { mark: Mark }) {
  const state: MarkState = mark.state;
  return (
    <span class="outline-sign flow-box-sign">
      {mark.branch !== undefined && <small>{words.dryRun.results[String(mark.branch) as "true"]}</small>}
      <Icon name={SIGNS[state]} />
      <span class="visually-hidden">{graphWords.marks[state]}</span>
    </span>
  );
}

function onStepKey(event: KeyboardEvent, step: Step, editor: ReturnType<typeof useEditor>) {
  if (event.ctrlKey || event.metaKey) return;
  const first = isBranch(step) ? "true" : "default";
  const act = event.altKey
    ? { ArrowUp: () => editor.shift(step, "moveUp"), ArrowDown: () => editor.shift(step, "moveDown") }[
        event.key
      ]
    : {
        Enter: () => {
          editor.select(step.id, { open: true });
          editor.enterPanel();
        },
        a: () => editor.addAt({ source: step.id, result: first }),
        Delete: () => editor.remove(step),
        Backspace: () => editor.remove(step),
      }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

function StepActions({ step }: { step: Step }) {
  const { addAt, remove, shift, continueAt, moveTo } = useEditor();
  const at = (result: "default" | "true" | "false") => ({ source: step.id, result });
  const isUpload = step.kind === "upload";
  if (isBranch(step))
    return (
      <div class="outline-actions">
        <Button small icon="plus" onClick={() => addAt(at("true"))}>
          {texts.addTrue}
        </Button>
        <Button small icon="plus" onClick={() => addAt(at("false"))}>
          {texts.addFalse}
        </Button>
        <Button small look="quiet" icon="trash" label={texts.remove} onClick={() => remove(step)} />
        <Menu
          small
          label={texts.more}
          items={[
            { label: texts.continueTrue, icon: "right", onSelect: () => continueAt(at("true")) },
            { label: texts.continueFalse, icon: "right", onSelect: () => continueAt(at("false")) },
          ]}
        />
      </div>
    );
  return (
    <div class="outline-actions">
      <Button small icon="plus" onClick={() => addAt(at("default"))}>
        {texts.add}
      </Button>
      {!isUpload && (
        <>
          <Button small look="quiet" icon="up" label={texts.up} onClick={() => shift(step, "moveUp")} />
          <Button small look="quiet" icon="down" label={texts.down} onClick={() => shift(step, "moveDown")} />
          <Button small look="quiet" icon="trash" label={texts.remove} onClick={() => remove(step)} />
        </>
      )}
      <Menu
        small
        label={texts.more}
        items={[
          { label: texts.continueAt, icon: "right", onSelect: () => continueAt(at("default")) },
          !isUpload && { label: texts.moveTo, icon: "move", onSelect: () => moveTo(step) },
        ]}
      />
    </div>
  );
}

/** The end of a way: the run's end, or a step elsewhere in the list. */
function EndRow({ end }: { end: NonNullable<Chain["end"]> }) {
  const { flow, outline, addAt, select } = useEditor();
  const next = stepOf(flow, end.next);
  return (
    <li class="outline-end">
      {next ? (
        <button type="button" class="link-button" onClick={() => select(next.id, { focus: true })}>
          <Icon name="right" />
          <bdi>{texts.continues(outline.numbers.get(next.id) ?? 0, titleOf(next))}</bdi>
        </button>
      ) : (
        <span class="soft">
          <Icon name="stop" />
          {texts.ends}
        </span>
      )}
      <Button small look="quiet" icon="plus" onClick={() => addAt(end.place)}>
        {texts.addHere}
      </Button>
    </li>
  );
}
