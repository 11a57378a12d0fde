/** The fields beside the graph: of the chosen step, or of the workflow. */
import { useState } from "preact/hooks";
import { Button } from "../../parts/button";
import { Select, TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { isBranch, type Place, placesOf, type Step, stepOf, targetAt, titleOf } from "../shared/flow";
import { kindInWords } from "../shared/workflow_types";
import { shortMessage } from "./check";
import { ConditionEditor } from "./condition_editor";
import { isId, targetsFor } from "./edit";
import { StepFields, Stored } from "./fields";
import { kindIcon } from "./kinds";
import { useEditor } from "./state";
import type { Problem } from "./types";
import { words } from "./words";

const texts = words.panel;

export function Panel() {
  const { flow, selected } = useEditor();
  const step = stepOf(flow, selected);
  return step ? <StepPanel key={step.id} step={step} /> : <WorkflowPanel />;
}

function StepPanel({ step }: { step: Step }) {
  const { catalogue, dispatch, problems, addAt, remove } = useEditor();
  const kind = catalogue?.kinds.find((one) => one.kind === step.kind);
  const [first] = placesOf(step);
  return (
    <>
      <header class="panel-head">
        <span class="flow-box-icon">
          <Icon name={kindIcon(step.kind)} />
        </span>
        <div>
          <h2>
            <bdi>{titleOf(step)}</bdi>
          </h2>
          {kind && (
            <p class="soft small">
              {step.title.trim() ? `${kindInWords(step.kind)}. ` : ""}
              {kind.summary}.
            </p>
          )}
        </div>
      </header>
      <Problems
        problems={problems.filter(
          ({ nodeId, field }) => nodeId === step.id && !isAtField(field, kind?.fields),
        )}
      />
      {step.kind === "upload" && <UploadFields />}
      {isBranch(step) && (
        <section class="stack" aria-label={texts.condition}>
          <h3>{texts.condition}</h3>
          <ConditionEditor
            group={step.condition}
            prefix={`branchConditions.${step.id}`}
            onChange={(condition, part) =>
              dispatch({ type: "condition", id: step.id, condition, ...(part ? { part } : {}) })
            }
          />
        </section>
      )}
      <StepFields step={step} />
      {placesOf(step).map((place) => (
        <NextField key={place.result} place={place} />
      ))}
      <TextField
        label={texts.title}
        hint={texts.titleHint}
        name="title"
        placeholder={kindInWords(step.kind)}
        maxLength={200}
        value={step.title}
        onInput={(event) => dispatch({ type: "title", id: step.id, title: event.currentTarget.value })}
      />
      <Advanced step={step} />
      <div class="actions">
        {first && (
          <Button small icon="plus" onClick={() => addAt(first)}>
            {isBranch(step) ? words.outline.addTrue : words.outline.add}
          </Button>
        )}
        {step.kind !== "upload" && (
          <Button small look="danger" icon="trash" onClick={() => remove(step)}>
            {words.outline.remove}
          </Button>
        )}
      </div>
    </>
  );
}

/** Whether a problem is shown at a field of its own. */
const isAtField = (field: string | null | undefined, fields: { name: string }[] | undefined) =>
  Boolean(
    field &&
      (field === "title" || fields?.some(({ name }) => name === field) || /conditions\[\d+\]/.test(field)),
  );

function Problems({ problems }: { problems: Problem[] }) {
  if (problems.length === 0) return null;
  return (
    <ul class="problems" aria-label={texts.problems}>
      {problems.map((problem) => (
        <li key={problem.code + problem.field + problem.message} class={`problem-${problem.severity}`}>
          <Icon name={problem.severity === "error" ? "error" : "warn"} />
          <span>{shortMessage(problem)}</span>
        </li>
      ))}
    </ul>
  );
}

/** The step that follows: the connection, for those who draw no line. */
function NextField({ place }: { place: Place }) {
  const { flow, outline, dispatch } = useEditor();
  const labels = { default: texts.next, true: texts.nextTrue, false: texts.nextFalse };
  const choices = targetsFor(flow, place)
    .sort((a, b) => numberOf(a.id) - numberOf(b.id))
    .map((step) => ({ value: step.id, label: `${numberOf(step.id)} ${titleOf(step)}` }));
  function numberOf(id: string) {
    return outline.numbers.get(id) ?? 0;
  }
  return (
    <Select
      label={labels[place.result]}
      name={`next-${place.result}`}
      // An id may be empty text in no definition
      value={targetAt(flow, place) ?? ""}
      choices={[{ value: "", label: texts.end }, ...choices]}
      onInput={(event) => dispatch({ type: "connect", place, target: event.currentTarget.value || null })}
    />
  );
}

function UploadFields() {
  const { flow, dispatch } = useEditor();
  return (
    <>
      <section class="stack" aria-label={texts.gate}>
        <div>
          <h3>{texts.gate}</h3>
          <p class="field-hint">{texts.gateHint}</p>
        </div>
        <ConditionEditor
          group={flow.gate}
          prefix="uploadGate"
          none={texts.noGate}
          onChange={(gate, part) => dispatch({ type: "gate", gate, ...(part ? { part } : {}) })}
        />
      </section>
      <Stored
        label={texts.trigger}
        hint={texts.triggerHint}
        of="folder"
        empty={texts.empty}
        value={flow.triggerFolder}
        set={(value) => dispatch({ type: "setting", name: "triggerFolder", value: value ?? "" })}
      />
    </>
  );
}

function Advanced({ step }: { step: Step }) {
  const { flow, dispatch, select } = useEditor();
  const [typed, setTyped] = useState(step.id);
  const isWrong = typed !== step.id && (!isId(typed) || stepOf(flow, typed) !== undefined);
  const take = () => {
    if (isWrong || typed === step.id) return;
    dispatch({ type: "rename", id: step.id, to: typed });
    select(typed);
  };
  return (
    <details class="advanced">
      <summary>{texts.advanced}</summary>
      <TextField
        label={texts.id}
        hint={texts.idHint}
        name="id"
        spellcheck={false}
        maxLength={100}
        value={typed}
        error={isWrong ? texts.idTaken : undefined}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onBlur={take}
        onKeyDown={(event) => event.key === "Enter" && take()}
      />
    </details>
  );
}

function WorkflowPanel() {
  const { flow, dispatch, problems } = useEditor();
  const set =
    (name: "name" | "renamePattern" | "webhookUrl") => (event: { currentTarget: HTMLInputElement }) =>
      dispatch({ type: "setting", name, value: event.currentTarget.value });
  const errorOf = (field: string) => {
    const problem = problems.find((one) => one.nodeId == null && one.field === field);
    return problem && shortMessage(problem);
  };
  const shown = ["name", "renamePattern", "webhookUrl"];
  return (
    <>
      <header class="panel-head">
        <span class="flow-box-icon">
          <Icon name="workflow" />
        </span>
        <h2>{texts.settings}</h2>
      </header>
      <Problems
        problems={problems.filter(({ nodeId, field }) => nodeId == null && !(field && shown.includes(field)))}
      />
      <TextField
        label={texts.name}
        name="name"
        maxLength={80}
        value={flow.name}
        error={errorOf("name")}
        onInput={set("name")}
      />
      <TextField
        label={texts.pattern}
        hint={texts.patternHint}
        name="renamePattern"
        spellcheck={false}
        maxLength={255}
        placeholder="{original}-{format}"
        value={flow.renamePattern}
        error={errorOf("renamePattern")}
        onInput={set("renamePattern")}
      />
      <TextField
        label={texts.webhookUrl}
        hint={texts.webhookUrlHint}
        name="webhookUrl"
        type="url"
        spellcheck={false}
        placeholder="https://shop.example.com/hooks"
        value={flow.webhookUrl}
        error={errorOf("webhookUrl")}
        onInput={set("webhookUrl")}
      />
    </>
  );
}
