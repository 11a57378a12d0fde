/** How runs ended at each step: counts on the graph, and what the chosen step does. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { formatNumber } from "../../parts/format";
import { Section } from "../../parts/page";
import { EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name } from "../../parts/values";
import { href, query, setQuery } from "../../router";
import { conditionText } from "../shared/condition_text";
import { settingsOf } from "../shared/definition_diff";
import { isBranch, readFlow, type Step, stepOf, titleOf } from "../shared/flow";
import { kindInWords, type NodeStatistics } from "../shared/workflow_types";
import { WorkflowGraph } from "../workflow_editor/graph";
import type { PartProps } from ".";
import { words as all } from "./words";

const words = all.statistics;
const NONE = { completed: 0, failed: 0, skipped: 0, tookTrue: 0, tookFalse: 0 };

export function Statistics({ workflow: { id, version, definition, runCount } }: PartProps) {
  const isOfAll = query.value.get("versions") === "all";
  const counted = useResource(
    async (signal) => {
      const path = `/api/workflows/${id}/statistics`;
      const asked = { query: isOfAll ? {} : { version }, signal };
      const { nodes } = await api.get<{ nodes: NodeStatistics[] }>(path, asked);
      return new Map(nodes.map((node) => [node.nodeId, node]));
    },
    [id, version, isOfAll],
    { on: ["run"], keep: true },
  );
  const flow = useMemo(() => readFlow("", definition), [definition]);
  const step = stepOf(flow, query.value.get("step"));
  if (runCount === 0)
    return (
      <EmptyState icon="chart" title={all.runs.emptyTitle}>
        {all.runs.empty}
      </EmptyState>
    );
  return (
    <Loaded of={counted} skeleton={<Skeleton rows={1} height={240} />}>
      {(counts) => (
        <>
          <div class="toolbar">
            {version > 1 && (
              <Segmented
                label={words.of}
                value={isOfAll ? "all" : ""}
                choices={[
                  { value: "", label: words.current(version) },
                  { value: "all", label: words.all },
                ]}
                onChange={(versions) => setQuery({ versions: versions || undefined })}
              />
            )}
            <span class="soft small">{counts.size > 0 ? words.lead : words.none}</span>
          </div>
          <div class="columns run-columns">
            <StepPanel
              step={step}
              gate={step?.kind === "upload" && flow.gate ? conditionText(flow.gate) : undefined}
              count={step && counts.get(step.id)}
              failedRuns={href(`/workflows/${id}/runs`, { status: "failed" })}
            />
            <Section title={words.graph} class="run-graph">
              <WorkflowGraph
                definition={definition}
                counts={counts}
                label={words.graphLabel}
                selected={step?.id}
                onSelect={(chosen) => setQuery({ step: chosen === step?.id ? undefined : chosen })}
              />
            </Section>
          </div>
        </>
      )}
    </Loaded>
  );
}

interface StepPanelProps {
  step: Step | undefined;
  /** Of the upload step. */
  gate: string | undefined;
  count: NodeStatistics | undefined;
  failedRuns: string;
}

function StepPanel({ step, gate, count, failedRuns }: StepPanelProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (step) place.current?.scrollIntoView({ block: "nearest" });
  }, [step?.id]);
  if (!step)
    return (
      <Section title={words.step}>
        <p class="soft">{words.choose}</p>
      </Section>
    );
  const settings = [...settingsOf(step), ...(gate ? [[words.gate, gate] as const] : [])];
  const { completed, failed, skipped, tookTrue, tookFalse } = count ?? NONE;
  const numbers: [string, number][] = [
    [words.through, completed + failed],
    ...(isBranch(step)
      ? ([
          [words.tookTrue, tookTrue],
          [words.tookFalse, tookFalse],
        ] as [string, number][])
      : []),
    [words.failed, failed],
    [words.skipped, skipped],
  ];
  return (
    <div ref={place}>
      <Section title={words.step}>
        <h3>
          <Name>{titleOf(step)}</Name>
        </h3>
        <dl class="facts">
          <dt>{words.kind}</dt>
          <dd>{kindInWords(step.kind)}</dd>
          {settings.map(([label, text]) => (
            <Fact key={label} label={label}>
              <Name>{text}</Name>
            </Fact>
          ))}
          {numbers.map(([label, value]) => (
            <Fact key={label} label={label}>
              <span class="numeric">{formatNumber(value)}</span>
            </Fact>
          ))}
        </dl>
        {failed > 0 && <a href={failedRuns}>{words.failedRuns}</a>}
      </Section>
    </div>
  );
}

const Fact = ({ label, children }: { label: string; children: preact.ComponentChildren }) => (
  <>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </>
);
