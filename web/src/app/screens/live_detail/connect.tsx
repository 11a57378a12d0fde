/** What an encoder needs, each value with a button that copies it. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { can } from "../../api/session";
import { Button, Submit } from "../../parts/button";
import { CopyField } from "../../parts/copy";
import { ask } from "../../parts/dialog";
import { Form, TextField } from "../../parts/form";
import { Section } from "../../parts/page";
import { Callout } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name } from "../../parts/values";
import type { LiveInput, LiveInputAnswer, LiveInputWithKey } from "../shared/live_types";
import type { InputProps } from "./index";
import { words } from "./words";

const WAYS = ["obs", "ffmpeg", "srt", "browser", "pull"] as const;
type Way = (typeof WAYS)[number];
const LABELS: Record<Way, string> = {
  obs: "OBS",
  ffmpeg: "ffmpeg",
  srt: "SRT",
  browser: "WebRTC",
  pull: "RTSP pull",
};

export function Connect({ input, set }: InputProps) {
  const [way, setWay] = useState<Way>(input.pullUrl ? "pull" : "obs");
  // In memory for as long as this part is open, and only when asked for
  const [plain, setPlain] = useState<LiveInputWithKey | null>(null);
  const shown = plain?.liveInput ?? input;
  return (
    <div class="columns">
      <Section
        title={words.tabs.connect}
        actions={
          <Segmented
            label={words.connect.label}
            value={way}
            choices={WAYS.map((value) => ({ value, label: LABELS[value] }))}
            onChange={setWay}
          />
        }
      >
        {way === "obs" && <Obs input={input} streamKey={plain ? shown.ingest.obsStreamKey : null} />}
        {way === "ffmpeg" && <Ffmpeg url={plain ? shown.ingest.rtmpUrl : withoutKey(input)} />}
        {way === "srt" && <Srt input={shown} isPlain={plain !== null} />}
        {way === "browser" && <Browser input={input} plain={plain} />}
        {way === "pull" && <Pull input={input} set={set} />}
        {way !== "pull" && <Key input={input} set={set} plain={plain} setPlain={setPlain} />}
      </Section>
      <Section title={words.connect.watch}>
        <CopyField label={words.connect.page} value={input.playback.watchUrl} />
        <CopyField label={words.connect.hls} value={input.playback.hlsUrl} />
        {input.playback.webRtcUrl && (
          <CopyField label={words.connect.whep} value={input.playback.webRtcUrl} />
        )}
        <CopyField label={words.connect.embed} value={embed(input)} code />
        <CopyField label={words.connect.element} value={element(input)} code />
      </Section>
    </div>
  );
}

const embed = (input: LiveInput) =>
  `<iframe src="${input.playback.watchUrl}" width="960" height="540" allow="autoplay; fullscreen" style="border:0"></iframe>`;

/** The element in another site's page; its script and the stream are of one host. */
function element({ playback, playbackId }: LiveInput): string {
  const root = playback.watchUrl.replace(/\/live\/[^/]+$/, "");
  return (
    `<script src="${root}/embed/sluice-player.js"></script>\n` +
    `<sluice-player src="${root}/live/v1/${playbackId}" autoplay muted controls></sluice-player>`
  );
}

const withoutKey = (input: LiveInput) =>
  `${input.ingest.obsServer}/${input.inputSlug}.${words.connect.hiddenKey}`;

function Obs({ input, streamKey }: { input: LiveInput; streamKey: string | null }) {
  return (
    <>
      <p class="soft">{words.connect.obs.lead}</p>
      <CopyField label={words.connect.obs.server} value={input.ingest.obsServer} />
      {streamKey && <CopyField label={words.connect.obs.key} value={streamKey} />}
      <p class="soft small">{words.connect.obs.hint}</p>
    </>
  );
}

function Ffmpeg({ url }: { url: string }) {
  const command =
    "ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30 \\\n  -f lavfi -i sine=frequency=440:sample_rate=48000 \\\n" +
    "  -c:v libx264 -preset veryfast -tune zerolatency -pix_fmt yuv420p \\\n  -g 60 -b:v 2500k -c:a aac -b:a 128k \\\n" +
    `  -f flv '${url}'`;
  return (
    <>
      <p class="soft">{words.connect.ffmpeg.lead}</p>
      <CopyField label={words.connect.ffmpeg.command} value={command} code />
    </>
  );
}

function Srt({ input, isPlain }: { input: LiveInput; isPlain: boolean }) {
  const { srtServer, srtUrl, srtPassphrase } = input.ingest;
  if (!srtServer) return <Callout title={words.connect.srt.off} />;
  return (
    <>
      <p class="soft">{words.connect.srt.lead}</p>
      <CopyField label={words.connect.srt.server} value={srtServer} />
      {isPlain && srtUrl && <CopyField label={words.connect.srt.url} value={srtUrl} />}
      {isPlain && srtPassphrase && <CopyField label={words.connect.srt.passphrase} value={srtPassphrase} />}
    </>
  );
}

/** The key goes in the fragment, which browsers do not send; the page takes it out of the address. */
function Browser({ input, plain }: { input: LiveInput; plain: LiveInputWithKey | null }) {
  const address = `/live/publish/${encodeURIComponent(input.inputSlug)}`;
  const { whipUrl, obsStreamKey } = (plain?.liveInput ?? input).ingest;
  return (
    <>
      <p class="soft">{words.connect.browser.lead}</p>
      <p>
        <a
          class="btn btn-solid"
          href={plain ? `${address}#key=${encodeURIComponent(plain.streamKey)}` : address}
          target="_blank"
          rel="noreferrer"
        >
          {words.connect.browser.open}
        </a>
      </p>
      <p class="soft small">{plain ? words.connect.browser.filledIn : words.connect.browser.typed}</p>
      {whipUrl && (
        <>
          <p class="soft">{words.connect.browser.whip}</p>
          <CopyField label={words.connect.browser.server} value={whipUrl.replace(/\/[^/]*$/, "")} />
          {plain && <CopyField label={words.connect.browser.token} value={obsStreamKey} />}
        </>
      )}
    </>
  );
}

interface KeyProps extends InputProps {
  plain: LiveInputWithKey | null;
  setPlain: (plain: LiveInputWithKey | null) => void;
}

function Key({ input, set, plain, setPlain }: KeyProps) {
  if (!can("write")) return null;
  const reveal = async () =>
    setPlain(await api.post<LiveInputWithKey>(`/api/live/inputs/${input.id}/reveal-key`));
  const rotate = async () => {
    let made: LiveInputWithKey | undefined;
    const done = await ask({
      title: words.connect.newKeyTitle,
      body: words.connect.newKeyBody(input.status !== "idle"),
      verb: words.connect.newKey,
      danger: input.status !== "idle",
      action: async () => {
        made = await api.post<LiveInputWithKey>(`/api/live/inputs/${input.id}/rotate-key`);
      },
    });
    if (!done || !made) return;
    setPlain(made);
    set({ ...input, streamKeyPrefix: made.liveInput.streamKeyPrefix, streamKeyRevealable: true });
  };
  return (
    <div class="live-key">
      <p class="soft small">
        {plain
          ? words.connect.shown
          : input.streamKeyRevealable
            ? words.connect.keyHidden
            : words.connect.lost}
      </p>
      <div class="actions">
        {plain ? (
          <Button icon="eye" onClick={() => setPlain(null)}>
            {words.connect.hide}
          </Button>
        ) : (
          input.streamKeyRevealable && (
            <Button look="solid" icon="eye" action={reveal}>
              {words.connect.show}
            </Button>
          )
        )}
        <Button icon="key" onClick={rotate}>
          {words.connect.newKey}
        </Button>
      </div>
    </div>
  );
}

function Pull({ input, set }: InputProps) {
  const change = async (pullUrl: string | null) =>
    set((await api.patch<LiveInputAnswer>(`/api/live/inputs/${input.id}`, { pullUrl })).liveInput);
  return (
    <>
      <p class="soft">{words.connect.pull.lead}</p>
      {input.pullUrl && (
        <p>
          {words.connect.pull.present} <Name>{input.pullUrl}</Name>
        </p>
      )}
      {can("write") && (
        // A new form after each change: the password does not stay in the page
        <Form key={input.pullUrl} action={(values) => change(String(values.get("pullUrl")))}>
          <TextField
            label={words.connect.pull.url}
            name="pullUrl"
            hint={words.connect.pull.hint}
            placeholder="rtsp://camera.example/stream"
            spellcheck={false}
            required
          />
          <div class="actions">
            <Submit>{words.save}</Submit>
            {input.pullUrl && <Button action={() => change(null)}>{words.connect.pull.stop}</Button>}
          </div>
        </Form>
      )}
    </>
  );
}
