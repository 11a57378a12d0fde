/** Dry run panel: the path that a file would take, what cannot be known beforehand, and the cost. Asked again at each change. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../../api/client";
import { type ApiError, asApiError, isAborted } from "../../api/error";
import { Button } from "../../parts/button";
import { TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { ErrorState } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name } from "../../parts/values";
import { type Fields, type Flow, stepOf, writeFlow } from "./flow";
import { titleOf } from "./kinds";
import type { DryRun } from "./marks";
import { useEditor } from "./state";
import { words } from "./words";

const texts = words.dryRun;

/** The file, stored or described; kept while the panel is closed. */
export interface Premise {
  from: "stored" | "described";
  file: { id: string; filename: string } | null;
  facts: Record<string, string>;
}

export const firstPremise: Premise = {
  from: "described",
  file: null,
  facts: { filename: "photo.jpg", mime: "image/jpeg", sizeBytes: "3000000", width: "4032", height: "3024" },
};

const NUMBERS = new Set(["sizeBytes", "width", "height", "duration"]);
const NAMES = Object.keys(texts.facts) as (keyof typeof texts.facts)[];

/** The body of the request; null while no file is chosen. */
function requestOf(flow: Flow, { from, file, facts }: Premise): Fields | null {
  const definition = writeFlow(flow);
  if (from === "stored") return file && { definition, fileId: file.id };
  const given = Object.entries(facts).filter(([, value]) => value.trim());
  return {
    definition,
    facts: Object.fromEntries(
      given.map(([name, value]) => [name, NUMBERS.has(name) ? Number(value) : value]),
    ),
  };
}

const PAUSE_MS = 300;

export interface Foreseen {
  answer: DryRun | null;
  error: ApiError | null;
}

/** Asks a moment after the last change of the flow or the file, while the panel is open. */
export function useDryRun(flow: Flow, premise: Premise, isOpen: boolean): Foreseen {
  const [state, setState] = useState<Foreseen>({ answer: null, error: null });
  useEffect(() => {
    const request = isOpen && requestOf(flow, premise);
    if (!request) return setState({ answer: null, error: null });
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.post<DryRun>("/api/workflows/dry-run", request, { signal: abort.signal }).then(
        (answer) => !abort.signal.aborted && setState({ answer, error: null }),
        (thrown) => isAborted(thrown) || setState({ answer: null, error: asApiError(thrown) }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [flow, premise, isOpen]);
  return state;
}

interface DryRunPanelProps {
  premise: Premise;
  onPremise: (premise: Premise) => void;
  foreseen: Foreseen;
  onClose: () => void;
}

export function DryRunPanel({ premise, onPremise, foreseen: { answer, error }, onClose }: DryRunPanelProps) {
  const { problems } = useEditor();
  const hasErrors = problems.some(({ severity }) => severity === "error");
  const choose = async () => {
    const { chooseFile } = await import("../shared/choose_file");
    const file = await chooseFile();
    if (file) onPremise({ ...premise, file });
  };
  return (
    <>
      <header class="panel-head">
        <span class="flow-box-icon">
          <Icon name="eye" />
        </span>
        <h2>{texts.title}</h2>
        <Button small look="quiet" icon="close" label={texts.close} onClick={onClose} />
      </header>
      <p class="soft small">{texts.intro}</p>
      <Segmented
        label={texts.with}
        value={premise.from}
        choices={[
          { value: "described", label: texts.described },
          { value: "stored", label: texts.stored },
        ]}
        onChange={(from) => onPremise({ ...premise, from })}
      />
      {premise.from === "stored" ? (
        <div class="stored">
          {premise.file && <Name>{premise.file.filename}</Name>}
          <Button small icon="file" action={choose}>
            {premise.file ? texts.other : texts.choose}
          </Button>
        </div>
      ) : (
        <div class="dry-facts">
          {NAMES.map((name) => (
            <TextField
              key={name}
              label={texts.facts[name]}
              name={name}
              spellcheck={false}
              inputMode={NUMBERS.has(name) ? "decimal" : undefined}
              value={premise.facts[name] ?? ""}
              onInput={(event) =>
                onPremise({ ...premise, facts: { ...premise.facts, [name]: event.currentTarget.value } })
              }
            />
          ))}
        </div>
      )}
      {hasErrors ? (
        <p class="soft">{texts.waiting}</p>
      ) : error ? (
        <ErrorState error={error} />
      ) : (
        answer && <Answer answer={answer} />
      )}
    </>
  );
}

const SIGNS = { taken: "check", notTaken: "skip", unknown: "help" } as const;

function Answer({ answer: { path, operations } }: { answer: DryRun }) {
  const { flow, select } = useEditor();
  const shown = useMemo(() => path.filter(({ nodeId }) => stepOf(flow, nodeId)), [path, flow]);
  return (
    <section class="stack" aria-label={texts.path} aria-live="polite">
      <p class="dry-cost">
        <strong>{texts.charged(operations.charged)}</strong>
        {operations.unknown > 0 && texts.perhaps(operations.unknown)}
      </p>
      <ol class="dry-path">
        {shown.map(({ nodeId, state, branch, because }) => {
          const step = stepOf(flow, nodeId);
          return (
            step && (
              <li key={nodeId} class={`dry-${state}`}>
                <Icon name={SIGNS[state] ?? "help"} />
                <div>
                  <button type="button" class="link-button" onClick={() => select(nodeId)}>
                    <bdi>{titleOf(step)}</bdi>
                  </button>{" "}
                  <span class="soft small">
                    {state === "taken" && branch ? texts.results[branch] : texts.states[state]}
                  </span>
                  {because && <p class="soft small">{because}</p>}
                </div>
              </li>
            )
          );
        })}
      </ol>
    </section>
  );
}
