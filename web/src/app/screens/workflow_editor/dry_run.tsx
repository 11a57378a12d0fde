/** Dry run panel: the path that a file would take, what cannot be known beforehand, and the cost. Asked again at each change. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../../api/client";
import { type ApiError, asApiError, isAborted } from "../../api/error";
import { Button } from "../../parts/button";
import { TextField } from "../../parts/form";
import { formatBytes } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { ErrorState } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name } from "../../parts/values";
import { announce } from "../../shell/toasts";
import { type Fields, type Flow, type Json, stepOf, titleOf } from "../shared/flow";
import type { DryRun, Foreseen } from "./marks";
import { useEditor } from "./state";
import { words } from "./words";
import { writeFlow } from "./write";

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
  const given: Fields = {};
  for (const [name, text] of Object.entries(facts)) {
    const value: Json = NUMBERS.has(name) ? Number(text) : text.trim();
    if (text.trim() && !Number.isNaN(value)) given[name] = value;
  }
  // What is left out is not known; of an image it is known that it has none.
  if (facts.mime?.startsWith("image/") && given.duration === undefined) given.duration = null;
  return { definition, facts: given };
}

const PAUSE_MS = 300;

export interface Foresight {
  answer: DryRun | null;
  error: ApiError | null;
}

/** Asks a moment after the last change of the flow or the file, while the dry run is open. */
export function useDryRun(flow: Flow, premise: Premise, isOpen: boolean): Foresight {
  const [state, setState] = useState<Foresight>({ answer: null, error: null });
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
  foreseen: Foresight;
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

function Answer({ answer: { path, operations, gate, output = [] } }: { answer: DryRun }) {
  const { flow } = useEditor();
  const shown = useMemo(() => path.filter(({ nodeId }) => stepOf(flow, nodeId)), [path, flow]);
  const perhaps = operations.unknown > 0 ? texts.perhaps(operations.unknown) : "";
  const cost = `${texts.charged(operations.charged)}${perhaps}`;
  const said = gate === "false" ? `${texts.gateNotMet} ${cost}` : cost;
  useEffect(() => announce(said), [said]);
  return (
    <section class="stack" aria-label={texts.path}>
      <p class="dry-cost">{cost}</p>
      {gate === "false" && <p>{texts.gateNotMet}</p>}
      <ol class="dry-path">
        {shown.map((entry) => (
          <PathEntry key={entry.nodeId} entry={entry} />
        ))}
      </ol>
      {output.length > 0 && (
        <>
          <h3>{texts.output}</h3>
          <ul class="dry-path">
            {output.map((file) => (
              <li key={file.nodeId}>
                <Icon name="file" />
                <div>
                  <bdi>{file.filename ?? texts.unnamed}</bdi>
                  <p class="soft small">{factsOf(file)}</p>
                </div>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

const SIGNS = { taken: "check", notTaken: "skip", unknown: "help" } as const;

function PathEntry({ entry: { nodeId, state, branch, fails, because } }: { entry: DryRun["path"][number] }) {
  const { flow, select } = useEditor();
  const step = stepOf(flow, nodeId);
  if (!step) return null;
  const outcome = fails
    ? texts.fails
    : branch && state === "taken"
      ? texts.results[branch]
      : texts.states[state];
  return (
    <li class={`dry-${fails ? "fails" : state}`}>
      <Icon name={fails ? "error" : (SIGNS[state] ?? "help")} />
      <div>
        <button type="button" class="link-button" onClick={() => select(nodeId)}>
          <bdi>{titleOf(step)}</bdi>
        </button>{" "}
        <span class="soft small">{outcome}</span>
        {because && <p class="soft small">{because}</p>}
      </div>
    </li>
  );
}

/** `image/webp, 1200 × 900, perhaps`. */
function factsOf({ mimeType, width, height, sizeBytes, state }: Foreseen): string {
  const size = width && height ? `${width} × ${height}` : width ? texts.wide(width) : undefined;
  const bytes = sizeBytes == null ? undefined : formatBytes(sizeBytes);
  return [mimeType, size, bytes, state === "unknown" && texts.states.unknown].filter(Boolean).join(", ");
}
