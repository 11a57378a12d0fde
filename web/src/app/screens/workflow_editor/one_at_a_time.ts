/** An act that is in progress at most once. Pure. */

/**
 * Returns `act` so that a call during an earlier one begins nothing, and ends as that one does: a save by a key and by the button
 * at once would send one version twice, and the second would find the first in its way.
 */
export function oneAtATime<Given extends unknown[], Result>(
  act: (...given: Given) => Promise<Result>,
): (...given: Given) => Promise<Result> {
  let current: Promise<Result> | undefined;
  return (...given) => {
    if (current) return current;
    const begun = act(...given).finally(() => {
      current = undefined;
    });
    current = begun;
    return begun;
  };
}
