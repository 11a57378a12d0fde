/** Parts of a screen that are large: loaded when they are shown. */
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../api/error";
import { ErrorState, Skeleton } from "./states";

/**
 * A component whose code is loaded when it is first drawn; until then a box of `height` pixels.
 *
 *     const Graph = lazily(() => import("./graph").then(({ RunGraph }) => RunGraph), 240);
 */
export function lazily<Props extends object>(load: () => Promise<ComponentType<Props>>, height: number) {
  let known: ComponentType<Props> | undefined;
  return function Lazily(props: Props): JSX.Element {
    const [failed, setFailed] = useState<unknown>();
    const [round, setRound] = useState(0);
    useEffect(() => {
      if (known) return;
      let ended = false;
      load().then(
        (Loaded) => {
          known = Loaded;
          if (!ended) setRound((count) => count + 1);
        },
        (thrown) => !ended && setFailed(thrown),
      );
      return () => {
        ended = true;
      };
    }, [failed === undefined]);
    const Known = known;
    if (Known) return <Known key={round > 0 ? 1 : 0} {...props} />;
    if (failed !== undefined)
      return <ErrorState error={asApiError(failed)} retry={() => setFailed(undefined)} />;
    return (
      <div aria-busy="true">
        <Skeleton rows={1} height={height} />
      </div>
    );
  };
}
