/** Keys of programs, of image addresses, and of those who sign playback tokens. */
import { can } from "../../api/session";
import { Page } from "../../parts/page";
import { Callout } from "../../parts/states";
import type { ScreenProps } from "../../routes";
import { SettingsTabs } from "../shared/settings_tabs";
import { ApiKeys } from "./api_keys";
import { DeliveryKeys } from "./delivery_keys";
import { PlaybackKeys } from "./playback_keys";
import { words } from "./words";

const PARTS = { keys: ApiKeys, "delivery-keys": DeliveryKeys, "playback-keys": PlaybackKeys };
type Part = keyof typeof PARTS;

export default function Keys({ params }: ScreenProps) {
  const part: Part = params.tab && params.tab in PARTS ? (params.tab as Part) : "keys";
  const Shown = PARTS[part];
  const isAllowed = part === "delivery-keys" || can("admin");
  return (
    <Page title={words.titles[part]}>
      <SettingsTabs />
      {isAllowed ? <Shown key={part} /> : <Callout title={words.adminOnly} />}
    </Page>
  );
}
