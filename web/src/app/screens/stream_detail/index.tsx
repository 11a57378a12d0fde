/** One video stream: player, renditions, captions, access, code. */
import { address } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { ButtonLink } from "../../parts/button";
import { Menu } from "../../parts/menu";
import { Page } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { Tabs } from "../../parts/tabs";
import { href } from "../../router";
import type { ScreenProps } from "../../routes";
import { curlItem } from "../../shell/curl_panel";
import { StreamStatus } from "../shared/stream_parts";
import type { Stream, StreamAnswer } from "../shared/stream_types";
import { Access } from "./access";
import { Captions } from "./captions";
import { Embed } from "./embed";
import { StreamSettings } from "./settings";
import { Watch } from "./watch";
import { words } from "./words";

const PARTS = ["watch", "captions", "access", "embed", "settings"] as const;
type Part = (typeof PARTS)[number];

export interface StreamProps {
  stream: Stream;
  /** Shows what a change answered with. */
  set: (stream: Stream) => void;
}

export default function StreamDetail({ params }: ScreenProps) {
  const id = params.id ?? "";
  const loaded = useResource(
    async (signal) => (await api.get<StreamAnswer>(`/api/video/streams/${id}`, { signal })).stream,
    [id],
    { on: ["stream"], id },
  );
  const stream = loaded.data;
  return (
    <Page
      title={stream?.title ?? words.loading}
      crumbs={[{ label: words.streams, to: "/streams" }]}
      aside={stream && <StreamStatus stream={stream} />}
      actions={
        stream && (
          <>
            {stream.playable && (
              <ButtonLink icon="out" href={address(`/video/${stream.playbackId}`)} target="_blank">
                {words.page}
              </ButtonLink>
            )}
            <Menu
              label={words.actions}
              items={[
                stream.sourceFileId !== null && {
                  label: words.watch.sourceOpen,
                  icon: "file",
                  href: href("/files", { file: stream.sourceFileId }),
                },
                curlItem,
              ]}
            />
          </>
        )
      }
    >
      <Loaded of={loaded} skeleton={<Skeleton rows={3} height={160} />}>
        {(data) => <Parts stream={data} set={loaded.set} asked={params.tab} />}
      </Loaded>
    </Page>
  );
}

function Parts({ stream, set, asked }: StreamProps & { asked: string | undefined }) {
  const part = PARTS.find((name) => name === asked) ?? "watch";
  return (
    <>
      <Tabs
        label={words.tabs.label}
        items={PARTS.map((name) => ({
          href: href(`/streams/${stream.id}/${name}`),
          label: words.tabs[name],
          count: name === "captions" ? words.captions.count(stream.captions.length) : undefined,
          current: name === part,
        }))}
      />
      <Shown part={part} stream={stream} set={set} />
    </>
  );
}

function Shown({ part, ...props }: StreamProps & { part: Part }) {
  switch (part) {
    case "watch":
      return <Watch stream={props.stream} />;
    case "captions":
      return <Captions {...props} />;
    case "access":
      return <Access {...props} />;
    case "embed":
      return <Embed stream={props.stream} />;
    case "settings":
      return <StreamSettings {...props} />;
  }
}
