/** The nodes that run the service, with state, roles, lease and clock. */
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Name, Since, Time } from "../../parts/values";
import { clockError } from "./model";
import type { Node } from "./types";
import { useSystem } from "./use_system";
import { words as all } from "./words";

const words = all.nodes;

export function Nodes() {
  const system = useSystem();
  return (
    <Loaded of={system} skeleton={<Skeleton rows={2} height={48} />}>
      {({ nodes }) => (
        <div class="card system-stack">
          <table class="table table-cards">
            <thead>
              <tr>
                <th scope="col">{words.node}</th>
                <th scope="col">{words.state}</th>
                <th scope="col">{words.roles}</th>
                <th scope="col">{words.version}</th>
                <th scope="col">{words.started}</th>
                <th scope="col">{words.lease}</th>
                <th scope="col">{words.clock}</th>
              </tr>
            </thead>
            <tbody>
              {nodes.map((node) => (
                <Row key={node.id} node={node} />
              ))}
            </tbody>
          </table>
          <p class="soft small">
            {nodes.some((node) => node.address !== null) ? words.cluster : words.alone}
          </p>
        </div>
      )}
    </Loaded>
  );
}

function Row({ node }: { node: Node }) {
  const clock = clockError(node.clockOffsetMs);
  return (
    <tr>
      <th scope="row">
        <span class="system-tags">
          <Name>{node.name}</Name>
          {node.you && <Badge tone="info">{words.you}</Badge>}
        </span>
        {node.address !== null && <span class="system-reason small">{node.address}</span>}
      </th>
      <td data-label={words.state}>
        <Badge tone={node.state === "up" ? "good" : "warn"}>{node.state}</Badge>
      </td>
      <td data-label={words.roles}>{node.roles.join(", ")}</td>
      <td data-label={words.version}>{node.version}</td>
      <td data-label={words.started}>
        <Since at={node.startedAt} />
      </td>
      <td data-label={words.lease}>{node.leaseUntil === null ? "–" : <Time at={node.leaseUntil} exact />}</td>
      <td data-label={words.clock}>
        {clock === undefined
          ? words.exact
          : clock.isBehind
            ? words.behind(clock.seconds)
            : words.ahead(clock.seconds)}
      </td>
    </tr>
  );
}
