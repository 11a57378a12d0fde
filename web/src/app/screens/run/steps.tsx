/** The steps of a run as a list: each opens to what went in, what came out, and what it found. */
import { useEffect, useRef } from "preact/hooks";
import { CodeBox } from "../../parts/code_box";
import { Icon, type IconName } from "../../parts/icon";
import { Name, Time } from "../../parts/values";
import { href } from "../../router";
import { formatTook, tookMs } from "../shared/run_time";
import { kindInWords } from "../shared/workflow_types";
import { type Step, type StepState, sizesOf, skippedWhy } from "./path";
import { words } from "./words";

const ICONS: Record<StepState, IconName> = {
  done: "check",
  failed: "error",
  running: "play",
  waiting: "clock",
  skipped: "right",
};

interface StepsProps {
  steps: Step[];
  selected: string | null;
  onSelect: (nodeId: string) => void;
}

export function Steps(props: StepsProps) {
  return (
    <ol class="rows run-steps">
      {props.steps.map((step) => (
        <StepRow key={step.nodeId} step={step} {...props} />
      ))}
    </ol>
  );
}

function StepRow({ step, steps, selected, onSelect }: StepsProps & { step: Step }) {
  const row = useRef<HTMLLIElement>(null);
  const isOpen = selected === step.nodeId;
  const { entry } = step;
  const took = entry && tookMs(entry);
  useEffect(() => {
    if (isOpen) row.current?.scrollIntoView({ block: "nearest" });
  }, [isOpen]);
  return (
    <li ref={row} class={`run-step run-step-${step.state}`}>
      <button
        type="button"
        class="run-step-head"
        aria-expanded={isOpen}
        onClick={() => onSelect(step.nodeId)}
      >
        <Icon name={ICONS[step.state]} />
        <span class="grow">
          <Name>{step.title}</Name>
          {entry?.branch !== null && entry?.branch !== undefined && (
            <strong class="run-way"> {entry.branch ? words.wayTrue : words.wayFalse}</strong>
          )}
        </span>
        <span class="soft small numeric">
          {entry?.status === "completed" || entry?.status === "failed"
            ? took !== undefined && formatTook(took)
            : words.states[step.state]}
        </span>
        <span class="visually-hidden">, {words.states[step.state]}</span>
        <Icon name={isOpen ? "up" : "down"} />
      </button>
      {entry?.status === "failed" && <p class="field-error">{entry.message}</p>}
      {isOpen && <Detail step={step} why={skippedWhy(step, steps)} />}
    </li>
  );
}

function Detail({ step: { entry, kind, state }, why }: { step: Step; why: string | undefined }) {
  if (!entry) return <p class="soft small">{state === "skipped" ? words.states.skipped : words.noStep}</p>;
  return (
    <div class="stack run-detail">
      <dl class="facts">
        <dt>{words.message}</dt>
        <dd>
          {kindInWords(kind)}
          {entry.status !== "failed" && (
            <>
              : <bdi>{why ?? entry.message}</bdi>
            </>
          )}
        </dd>
        {sizesOf(entry) && (
          <>
            <dt>{words.size}</dt>
            <dd class="numeric">{sizesOf(entry)}</dd>
          </>
        )}
        {entry.startedAt && (
          <>
            <dt>{words.time}</dt>
            <dd>
              <Time at={entry.startedAt} exact />
            </dd>
          </>
        )}
        {entry.storedFileId && (
          <>
            <dt>{words.stored}</dt>
            <dd>
              <a href={href("/files", { file: entry.storedFileId })}>{words.openFile}</a>
            </dd>
          </>
        )}
      </dl>
      {entry.facts && <CodeBox label={words.facts_}>{JSON.stringify(entry.facts, null, 2)}</CodeBox>}
    </div>
  );
}
