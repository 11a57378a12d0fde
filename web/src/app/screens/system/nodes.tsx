/** The machines that run the service. */
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Name, Since } from "../../parts/values";
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
                <th scope="col">{words.version}</th>
                <th scope="col">{words.started}</th>
              </tr>
            </thead>
            <tbody>
              {nodes.map((node) => (
                <tr key={node.name}>
                  <th scope="row">
                    <span class="system-tags">
                      <Name>{node.name}</Name>
                      {node.you && <Badge tone="info">{words.you}</Badge>}
                    </span>
                  </th>
                  <td data-label={words.version}>{node.version}</td>
                  <td data-label={words.started}>
                    <Since at={node.startedAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="soft small">{words.note}</p>
        </div>
      )}
    </Loaded>
  );
}
