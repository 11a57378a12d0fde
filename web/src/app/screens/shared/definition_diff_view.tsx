/** The differences between two definitions as a list. */
import { useMemo } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Badge, Skeleton, type Tone } from "../../parts/states";
import { Name } from "../../parts/values";
import type { Catalogue } from "../workflow_editor/types";
import { type Difference, differences, type Line } from "./definition_diff";
import type { Definition } from "./workflow_types";

const words = {
  none: "Both have the same steps, connections and settings.",
  added: "added",
  removed: "removed",
  changed: "changed",
  step: "Step",
  connection: "Connection",
  setting: "Setting",
  before: "before:",
  after: "after:",
  unset: "not set",
};
const TONES: Record<Difference["kind"], Tone> = { added: "good", removed: "bad", changed: "warn" };

export function Differences({ before, after }: { before: Definition; after: Definition }) {
  const catalogue = useResource((signal) => api.get<Catalogue>("/api/catalogue", { signal }), []);
  const found = useMemo(() => differences(before, after, catalogue.data), [before, after, catalogue.data]);
  if (!catalogue.data && !catalogue.error) return <Skeleton rows={3} height={36} />;
  if (found.length === 0) return <p class="soft">{words.none}</p>;
  return (
    <ul class="rows differences">
      {found.map((each, i) => (
        // The same two definitions have the same differences
        <li key={i}>
          <Badge tone={TONES[each.kind]}>{words[each.kind]}</Badge>
          <div class="grow">
            <span class="soft small">{words[each.what]}</span> <Name>{each.title}</Name>
            {each.lines.length > 0 && (
              <dl class="facts">
                {each.lines.map((line) => (
                  <Changed key={line.label} line={line} isChange={each.kind === "changed"} />
                ))}
              </dl>
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Changed({ line: { label, before, after }, isChange }: { line: Line; isChange: boolean }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>
        {(before || isChange) && (
          <del>
            <span class="visually-hidden">{words.before}</span>
            <bdi>{before || words.unset}</bdi>
          </del>
        )}{" "}
        {(after || isChange) && (
          <ins>
            <span class="visually-hidden">{words.after}</span>
            <bdi>{after || words.unset}</bdi>
          </ins>
        )}
      </dd>
    </>
  );
}
