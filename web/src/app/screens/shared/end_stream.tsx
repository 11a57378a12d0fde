/** Ending what is on air, from the input's page and from Activity. */
import { api } from "../../api/client";
import { ask } from "../../parts/dialog";
import { formatNumber } from "../../parts/format";
import { toast } from "../../shell/toasts";
import type { LiveInput, LiveInputAnswer } from "./live_types";

const viewersInWords = (count: number) => (count === 1 ? "1 viewer" : `${formatNumber(count)} viewers`);

export const endWords = {
  end: "End stream",
  title: (name: string) => `End the stream of “${name}”?`,
  body: (viewers: number) =>
    `The encoder is disconnected and the broadcast is over${viewers > 0 ? ` for ${viewersInWords(viewers)}` : ""}. An encoder that connects again by itself, as OBS does, begins a new broadcast: to keep it away, make a new key or disable the input.`,
  ended: "The stream has ended.",
};

/** Asks first. Resolves with the input as it is then, or undefined. */
export async function endStream({ id, name, viewers }: Pick<LiveInput, "id" | "name" | "viewers">) {
  let ended: LiveInput | undefined;
  await ask({
    title: <bdi>{endWords.title(name)}</bdi>,
    body: endWords.body(viewers ?? 0),
    verb: endWords.end,
    action: async () => {
      ended = (await api.post<LiveInputAnswer>(`/api/live/inputs/${id}/end`)).liveInput;
    },
  });
  if (ended) toast(endWords.ended, "good");
  return ended;
}
