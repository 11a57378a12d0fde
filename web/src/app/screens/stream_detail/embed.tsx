/** Addresses and code for pages of others. */
import { CopyField } from "../../parts/copy";
import { Section } from "../../parts/page";
import { Callout } from "../../parts/states";
import { addressesOf, baseOf } from "./code";
import type { StreamProps } from "./index";
import { words } from "./words";

const texts = words.embed;

export function Embed({ stream }: Pick<StreamProps, "stream">) {
  const { page, hls, poster, iframe, hlsjs } = addressesOf(stream, baseOf(stream.manifestUrl));
  return (
    <>
      {stream.access === "signed" && <Callout>{texts.signed}</Callout>}
      {stream.allowedDomains.length > 0 && <Callout>{texts.domains}</Callout>}
      <div class="columns">
        <Section title={texts.links}>
          <CopyField label={texts.page} value={page} />
          <CopyField label={texts.hls} value={hls} />
          {stream.posterUrl && stream.access === "public" && (
            <CopyField label={texts.poster} value={poster} />
          )}
        </Section>
        <Section title={texts.code}>
          <CopyField label={texts.iframe} value={iframe} code />
          <CopyField label={texts.hlsjs} value={hlsjs} code />
        </Section>
      </div>
    </>
  );
}
