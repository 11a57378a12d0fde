/** Settings: the users of the account, and the invitations with which others join. */
import { can } from "../../api/session";
import { Page } from "../../parts/page";
import { Callout } from "../../parts/states";
import type { ScreenProps } from "../../routes";
import { SettingsTabs } from "../shared/settings_tabs";
import { Invitations } from "./invitations";
import { Users } from "./users";
import { words } from "./words";

export default function Members({ params }: ScreenProps) {
  const part = params.tab === "invitations" ? "invitations" : "members";
  return (
    <Page title={words.titles[part]}>
      <SettingsTabs />
      {!can("admin") ? (
        <Callout title={words.adminOnly} />
      ) : part === "invitations" ? (
        <Invitations />
      ) : (
        <Users />
      )}
    </Page>
  );
}
