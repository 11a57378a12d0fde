/** The pause before the next try of a failed request. Pure: the caller passes the attempt and a random number. */

export const FIRST_DELAY_MS = 500;
export const LONGEST_DELAY_MS = 3000;

/**
 * The wait before try number `attempt` (0 = the first one after a failure): doubling from 0.5 s to 3 s, and anywhere
 * in the upper half of that, so that a thousand open pages do not come back in the same instant.
 *
 * @param random a number in [0, 1)
 */
export function retryDelayMs(attempt: number, random: number, longestMs = LONGEST_DELAY_MS): number {
  const ceiling = Math.min(longestMs, FIRST_DELAY_MS * 2 ** Math.min(attempt, 10));
  return Math.round(ceiling / 2 + (ceiling / 2) * random);
}
