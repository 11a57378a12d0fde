/** The values that an encoder needs, and the sign that it has arrived. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import { Button, ButtonLink } from "../../parts/button";
import { CopyField } from "../../parts/copy";
import { showSecret } from "../../parts/dialog";
import { href } from "../../router";
import type { LiveInput, LiveInputWithKey } from "../shared/live_types";
import { words } from "./words";

/** After which it is said what may be in the way. */
const HINT_AFTER_MS = 30_000;

export function GoLive({ input, onChange }: { input: LiveInput | undefined; onChange: () => void }) {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), HINT_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  if (!input) {
    const create = async () => {
      const made = await api.post<LiveInputWithKey>("/api/live/inputs", { name: words.steps.live.firstName });
      onChange();
      await show(made);
    };
    return (
      <>
        <p class="soft">{words.steps.live.none}</p>
        <Button look="solid" icon="plus" action={create}>
          {words.steps.live.create}
        </Button>
      </>
    );
  }
  const key = async () => {
    const way = input.streamKeyRevealable ? "reveal-key" : "rotate-key";
    await show(await api.post<LiveInputWithKey>(`/api/live/inputs/${input.id}/${way}`));
    onChange();
  };
  return (
    <>
      <p class="soft">{words.steps.live.lead}</p>
      <CopyField label={words.steps.live.server} value={input.ingest.obsServer} />
      <div class="actions">
        <Button icon="key" action={key}>
          {input.streamKeyRevealable ? words.steps.live.showKey : words.steps.live.newKey}
        </Button>
        <ButtonLink look="quiet" href={href(`/live/${input.id}`)}>
          {words.steps.live.open}
        </ButtonLink>
      </div>
      <p class="step-wait">
        <span class="pulse" aria-hidden="true" />
        {words.steps.live.waiting}
      </p>
      {isLong && <p class="soft small">{words.steps.live.hint}</p>}
    </>
  );
}

function show({ liveInput, streamKey }: LiveInputWithKey): Promise<void> {
  return showSecret({
    title: words.steps.live.keyTitle,
    note: <p>{words.steps.live.keyNote}</p>,
    fields: [
      { label: words.steps.live.server, value: liveInput.ingest.obsServer },
      { label: words.steps.live.key, value: streamKey },
      { label: words.steps.live.command, value: testVideo(liveInput.ingest.rtmpUrl) },
    ],
  });
}

const testVideo = (url: string) =>
  "ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30 -f lavfi -i sine=frequency=440:sample_rate=48000 " +
  "-c:v libx264 -preset veryfast -tune zerolatency -pix_fmt yuv420p -g 60 -b:v 2500k -c:a aac -b:a 128k " +
  `-f flv '${url}'`;
