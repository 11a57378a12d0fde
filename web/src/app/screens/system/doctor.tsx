/** The checks of `sluice doctor`, run when one asks. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { Button } from "../../parts/button";
import { Section } from "../../parts/page";
import { Badge, Callout, Skeleton, type Tone } from "../../parts/states";
import { counts, withProtocol, worstFirst } from "./model";
import type { Report } from "./types";
import { words as all } from "./words";

const words = all.doctor;
const TONES: Record<string, Tone> = { ok: "good", warn: "warn", fail: "bad" };

export function Doctor() {
  const [report, setReport] = useState<Report>();
  const [isRunning, setRunning] = useState(false);
  const run = async () => {
    setRunning(true);
    try {
      setReport(await api.get<Report>("/api/system/doctor"));
    } finally {
      setRunning(false);
    }
  };
  return (
    <Section
      title={all.tabs.doctor}
      actions={
        <Button look="solid" icon="reload" action={run}>
          {report ? words.again : words.run}
        </Button>
      }
    >
      <p class="soft">
        {words.about} <code>sluice doctor</code>. {words.duration}
      </p>
      <div role="status">
        {isRunning && <p class="visually-hidden">{words.running}</p>}
        {report && <Verdict of={report} />}
      </div>
      {isRunning && !report && <Skeleton rows={6} height={36} />}
      {report && <Findings of={report} />}
    </Section>
  );
}

function Verdict({ of }: { of: Report }) {
  const { warned, failed } = counts(of);
  const tone = failed > 0 ? "bad" : warned > 0 ? "warn" : "good";
  const said = [failed > 0 && words.failed(failed), warned > 0 && words.warned(warned)].filter(Boolean);
  return <Callout tone={tone} title={said.length > 0 ? said.join(", ") : words.ok} />;
}

function Findings({ of }: { of: Report }) {
  return (
    <ul class="rows">
      {worstFirst(of).map(({ check, level, message, advice }, i) => (
        // A check may have several findings.
        <li key={`${check}/${i}`} class="finding">
          <span class="finding-level">
            <Badge tone={TONES[level] ?? "calm"} dot>
              {words.levels[level] ?? level}
            </Badge>
          </span>
          <span class="grow">
            <strong class="system-capital">{withProtocol(check)}</strong>
            <span class="finding-text">{message}</span>
            {advice && <span class="finding-text soft">→ {advice}</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}
