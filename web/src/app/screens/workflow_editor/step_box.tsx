/** A step as the canvas and the drawing of a run show it. */
import { Icon, type IconName } from "../../parts/icon";
import { type Step, titleOf } from "../shared/flow";
import { kindIcon } from "./kinds";
import type { Mark, MarkState } from "./marks";

const SIGNS: Record<MarkState, IconName | undefined> = {
  done: "check",
  failed: "error",
  running: "play",
  waiting: "clock",
  skipped: "skip",
  unknown: "help",
};

interface StepBoxProps {
  step: Step;
  /** Its fields in a line. */
  summary: string;
  mark?: Mark | undefined;
  /** Errors and warnings of lint, for the sign in the corner. */
  problem?: "error" | "warning" | undefined;
}

export function StepBox({ step, summary, mark, problem }: StepBoxProps) {
  const sign = mark && SIGNS[mark.state];
  const below = mark?.note ?? summary;
  return (
    <span
      class={`flow-box ${step.kind === "branch" ? "flow-box-branch" : ""} ${mark ? `flow-${mark.state}` : ""}`}
    >
      <span class="flow-box-icon">
        <Icon name={kindIcon(step.kind)} />
      </span>
      <span class="flow-box-text">
        <bdi class="flow-box-title">{titleOf(step)}</bdi>
        {below && <bdi class="flow-box-note">{below}</bdi>}
      </span>
      {sign && (
        <span class="flow-box-sign">
          <Icon name={sign} />
        </span>
      )}
      {problem && (
        <span class={`flow-box-problem flow-box-${problem}`}>
          <Icon name={problem === "error" ? "error" : "warn"} />
        </span>
      )}
    </span>
  );
}
