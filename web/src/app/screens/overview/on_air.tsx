/** The inputs that are on air, or may come back. */
import { Section } from "../../parts/page";
import { Name } from "../../parts/values";
import { href } from "../../router";
import { LivePoster, LiveStatus } from "../shared/live_parts";
import type { LiveInput, LiveInputs } from "../shared/live_types";
import { words } from "./words";

export function OnAir({ onAir, counts }: { onAir: LiveInput[]; counts: LiveInputs["counts"] }) {
  return (
    <Section
      title={words.onAir.title}
      actions={
        <>
          {counts.total > 0 && (
            <span class="soft small numeric">
              {words.onAir.count(counts.live + counts.reconnecting, counts.total)}
            </span>
          )}
          <a class="small" href={href("/live")}>
            {words.onAir.all}
          </a>
        </>
      }
    >
      {onAir.length === 0 && <p class="soft">{words.onAir.none}</p>}
      {onAir.length > 0 && (
        <ul class="rows">
          {onAir.map((input) => (
            <li key={input.id} class="on-air-row">
              <LivePoster input={input} />
              <div class="grow">
                <a class="one-line" href={href(`/live/${input.id}`)}>
                  <Name>{input.name}</Name>
                </a>
                <span class="on-air-facts">
                  <LiveStatus input={input} />
                  {input.viewers !== null && (
                    <span class="numeric">{words.onAir.viewers(input.viewers)}</span>
                  )}
                </span>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
